"""Recognizing that a provider refused a request because it was longer than the window."""

from __future__ import annotations

# Wordings of the providers' own errors, lower case: Anthropic, OpenAI, Gemini, Bedrock, vLLM, OpenRouter.
PHRASES = (
    "prompt is too long",
    "contextwindowexceedederror",
    "input is too long",
    "model_context_window_exceeded",
    "context_length_exceeded",
    "maximum context length",
    "exceeds the maximum number of tokens",
    "exceeds the context window",
    "exceed context limit",
    "context window exceeds limit",
    "too many total text bytes",
    "ran out of room in the model's context window",
    "reduce the length of the messages",
)


def is_overflow(text: str) -> bool:
    """Whether an error text says that the prompt did not fit."""
    lowered = text[:4000].lower()
    return any(phrase in lowered for phrase in PHRASES)
