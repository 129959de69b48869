"""Presets: what known agents do to their context window, replayed by rule."""

from ctxctl.simulate.presets.limits import trigger_tokens
from ctxctl.simulate.presets.policy import PresetPolicy, preset_policy
from ctxctl.simulate.presets.schema import Preset

__all__ = ["Preset", "PresetPolicy", "preset_policy", "trigger_tokens"]
