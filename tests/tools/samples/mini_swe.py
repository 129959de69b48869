"""The mini-swe-agent sample: a rounding bug, ten calls, with the price of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .core import bundle, opaque, pick, short_id, tokens, write_pretty

MODEL = "google/gemini-3-pro-preview"
INSTANCE = "tickwatch__tickwatch-118"
PER_TOKEN = 2.75
PROMPT_PRICE, COMPLETION_PRICE = 2e-6, 12e-6  # USD per token
CACHED_SHARE = 0.1
MISS = 7  # this call finds nothing in the provider's cache
STARTED = 1768903214


def price(prompt: int, cached: int, completion: int) -> tuple[float, float]:
    first = round((prompt - cached) * PROMPT_PRICE + cached * PROMPT_PRICE * CACHED_SHARE, 10)
    return first, round(completion * COMPLETION_PRICE, 10)


def usage(prompt: int, cached: int, completion: int, reasoning: int) -> dict[str, Any]:
    for_prompt, for_completion = price(prompt, cached, completion)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "cost": round(for_prompt + for_completion, 10),
        "is_byok": False,
        "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0, "video_tokens": 0},
        "cost_details": {
            "upstream_inference_cost": None,
            "upstream_inference_prompt_cost": for_prompt,
            "upstream_inference_completions_cost": for_completion,
        },
        "completion_tokens_details": {"reasoning_tokens": reasoning, "image_tokens": 0},
    }


def response(number: int, when: int, content: str, reason: str | None, used: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None, "reasoning": reason}
    if reason:
        form = "google-gemini-v1"
        message["reasoning_details"] = [
            {"type": "reasoning.text", "text": reason, "format": form, "index": 0},
            {"type": "reasoning.encrypted", "data": opaque(f"mini/{number}", 240, "Ci"), "format": form, "index": 0},
        ]
    choice = {
        "logprobs": None,
        "finish_reason": "stop",
        "native_finish_reason": "STOP",
        "index": 0,
        "message": message,
    }
    return {
        "id": f"gen-{when}-{short_id(f'mini/{number}', 20)}",
        "provider": "Google",
        "model": MODEL,
        "object": "chat.completion",
        "created": when,
        "choices": [choice],
        "usage": used,
    }


def config(text: dict[str, str]) -> dict[str, Any]:
    return {
        "agent": {
            "system_template": text["system"],
            "instance_template": "{{task}}",
            "timeout_template": "The command {{action['action']}} timed out.\n<output>\n{{output}}\n</output>",
            "format_error_template": "Give exactly one bash code block, found {{actions|length}}.",
            "action_observation_template": (
                "<returncode>{{output.returncode}}</returncode>\n<output>\n{{output.output}}</output>"
            ),
            "step_limit": 250,
            "cost_limit": 3.0,
        },
        "model": {
            "model_name": MODEL,
            "model_kwargs": {"temperature": 0.0},
            "set_cache_control": None,
            "cost_tracking": "default",
        },
        "environment": {"image": "tickwatch-118:latest", "cwd": "/testbed", "env": {"PAGER": "cat"}, "timeout": 60},
        "agent_type": "minisweagent.agents.default.DefaultAgent",
        "model_type": "minisweagent.models.openrouter_model.OpenRouterModel",
        "environment_type": "minisweagent.environments.docker.DockerEnvironment",
    }


def build(folder: Path) -> dict[str, Any]:
    text = bundle("mini_texts.txt")
    text["out-2"] = text["text.py"]
    text["out-3"] += text["test_text.py"]
    text = {k: v.rstrip("\n") for k, v in text.items()}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": text["system"]},
        {"role": "user", "content": text["task"]},
    ]
    prompt = sum(tokens(m["content"], PER_TOKEN) + 4 for m in messages)
    cacheable, when, costs = 0, STARTED, []
    for number in range(1, 11):
        content = f"{text[f'think-{number}']}\n\n```bash\n{text[f'cmd-{number}']}\n```"
        reason = text.get(f"reason-{number}")
        thought = tokens(reason, 2.4) if reason else 0
        answer = tokens(content, PER_TOKEN)
        cached = 0 if number == MISS else cacheable // 512 * 512
        used = usage(prompt, cached, answer + thought, thought)
        costs.append(used["cost"])
        answered = response(number, when, content, reason, used)
        messages.append({"role": "assistant", "content": content, "extra": {"response": answered}})
        if number == 10:
            break
        seen = f"<returncode>0</returncode>\n<output>\n{text[f'out-{number}']}\n</output>"
        messages.append({"role": "user", "content": seen})
        cacheable = prompt if prompt >= 1024 else 0
        prompt += answer + tokens(seen, PER_TOKEN) + 8
        when += pick(f"mini/when{number}", 4, 15)
    messages.append({"role": "user", "content": text["diff"] + "\n"})
    info = {
        "exit_status": "Submitted",
        "submission": text["diff"] + "\n",
        "model_stats": {"instance_cost": round(sum(costs), 10), "api_calls": len(costs)},
        "mini_version": "1.15.0",
        "config": config(text),
    }
    trajectory = {
        "info": info,
        "messages": messages,
        "trajectory_format": "mini-swe-agent-1",
        "instance_id": INSTANCE,
    }
    write_pretty(folder / "mini-swe-agent.traj.json", trajectory)
    return trajectory
