"""What injected instructions look like in English.

The phrases are ours. The attacks are those that OWASP's "LLM01 Prompt Injection" and Greshake et al., "Not what you've
signed up for" (arXiv 2302.12173), describe, and the control tokens of open models' chat templates, which a tool's
output has no reason to hold. A phrase that documentation and source code use too is `low`. Which phrases may be more
than low was settled on the tool results of recorded sessions: hardly any of them may be hit.
"""

from __future__ import annotations

from ctxctl.guard.rules import CALL, INSTRUCTION, OVERRIDE, ROLE, SECRET, Rule, rule

EARLIER = "(?:previous|prior|preceding|above|earlier|foregoing|initial|original|system|safety)"
ORDERS = "(?:instructions?|prompts?|directives?|guidelines?|programming)"
LOOSE = "(?:rules?|commands?|constraints?|restrictions?|training|context|messages?|conversations?)"
ALL = "(?:(?:all|any|every|of|the|your|my|these|those|its|other|and) ){0,4}"
AI = (
    "(?:ai|a\\.i\\.|llm|ai[- ](?:assistant|agent|model|bot|system)|(?:large )?language model|assistant|chatbot|"
    "coding (?:agent|assistant)|claude|chatgpt|copilot|gemini|codex)s?"
)
MACHINE = "(?:ai|a\\.i\\.|llm|ai[- ](?:assistant|agent|model|bot|system)|(?:large )?language model|chatbot)"
PERSON = "(?:the |your )?(?:user|human|operator|developer|owner)s?"
LEAVE = "(?:ignore|ignoring|disregard|disregarding|forget|override|bypass)"
HIDDEN = "(?:system|initial|original|hidden|secret|internal|confidential|base)"
VERBS = (
    "(?:reveal|print|show|output|repeat|display|leak|expose|disclose|send|tell|give|write|echo|dump|share|post|"
    "recite|"
    "return|provide|copy)"
)
CREDENTIALS = (
    "(?:api[ _-]?keys?|credentials?|passwords?|secrets?|environment variables?|env vars?|\\.env(?: file)?|ssh keys?|"
    "private keys?|(?:access|auth|session|api) tokens?|session cookies?|id_rsa)"
)
LEAVE_NEEDLES = "ignor|disregard|forget|overrid|bypass"

ENGLISH: tuple[Rule, ...] = (
    # -- system-override ---------------------------------------------------------------------------------------------
    rule(OVERRIDE, "high", LEAVE_NEEDLES, f"{LEAVE} {ALL}{EARLIER} (?:[a-z]{{1,14}} )?{ORDERS}\\b"),
    rule(OVERRIDE, "high", LEAVE_NEEDLES, f"{LEAVE} (?:all (?:of )?)?your (?:[a-z]{{1,14}} )?{ORDERS}\\b"),
    rule(
        OVERRIDE,
        "high",
        LEAVE_NEEDLES,
        f"{LEAVE} (?:everything|anything|all|what)(?: that)? you(?:'ve| have| were) "
        "(?:been )?(?:told|given|instructed|taught)",
    ),
    rule(
        OVERRIDE,
        "medium",
        LEAVE_NEEDLES,
        f"{LEAVE} (?:all|any|every)(?: of)?(?: the| your| these)? {EARLIER} {LOOSE}\\b",
    ),
    rule(OVERRIDE, "low", LEAVE_NEEDLES, f"{LEAVE} {ALL}(?:{EARLIER} {LOOSE}\\b|instructions\\b)"),
    rule(
        OVERRIDE,
        "medium",
        "not follow|stop following",
        f"(?:not follow|stop following) (?:any |the |your |all ){{0,2}}{EARLIER} {ORDERS}\\b",
    ),
    rule(
        OVERRIDE,
        "high",
        "instruction",
        "(?:your|the) (?:new|updated|revised|real|actual|true) (?:system )?instructions? (?:is|are|follows?)\\b",
        40,
    ),
    rule(
        OVERRIDE,
        "medium",
        "instruction",
        "(?:^|[\\]>*.!])[\\x20\\t#*\\[]{0,6}(?:new|updated|revised) (?:system )?instructions?\\]?:",
        50,
    ),
    rule(
        OVERRIDE,
        "high",
        "system prompt",
        "system prompt (?:override|(?:has been|is now|was) (?:updated|changed|replaced|disabled|overridden))",
    ),
    rule(
        OVERRIDE,
        "high",
        "no longer",
        "you are no longer (?:bound|restricted|limited|constrained|subject|required to follow)",
        16,
    ),
    rule(
        OVERRIDE,
        "high",
        "you are now",
        "you are now (?:dan\\b|jailbroken|unrestricted|uncensored|free (?:from|of)|in "
        "(?:developer|god|admin|debug|jailbreak|unrestricted|dan) mode)",
    ),
    rule(
        OVERRIDE,
        "medium",
        " mode",
        "(?:god|dan|jailbreak|unrestricted|sudo) mode (?:is )?(?:now )?(?:enabled|activated|on)\\b",
        14,
    ),
    rule(
        OVERRIDE,
        "low",
        " mode",
        "(?:developer|admin|debug|maintenance) mode (?:is )?(?:now )?(?:enabled|activated)\\b",
        14,
    ),
    rule(OVERRIDE, "medium", "do anything now", "do anything now\\b"),
    rule(
        OVERRIDE,
        "medium",
        "from now on",
        "from now on you (?:are|will act as|will be|must act as|only obey|obey|answer only to)\\b",
    ),
    rule(OVERRIDE, "low", "from now on", "from now on you\\b"),
    # -- role-confusion ----------------------------------------------------------------------------------------------
    rule(
        ROLE,
        "medium",
        ("<|",),
        "<\\|(?:im_start|start_header_id|start)\\|>\\s{0,3}(?:system|developer|user|assistant)\\b",
    ),
    rule(ROLE, "medium", ("<|",), "<\\|(?:system|user|assistant|developer)\\|>"),
    rule(
        ROLE,
        "low",
        ("<|",),
        "<\\|(?:im_start|im_end|start_header_id|end_header_id|eot_id|endoftext|endofprompt|"
        "begin_of_text|channel|message|start|end|return|constrain)\\|>",
    ),
    rule(ROLE, "medium", "<<sys>>", "<<sys>>"),
    rule(ROLE, "medium", "[inst]", "\\[inst\\]\\s"),
    rule(ROLE, "low", "<system|</system", "</?system(?:[_-](?:prompt|message|instructions?|override))?>"),
    rule(
        ROLE,
        "medium",
        "system|developer|admin",
        "^[\\x20\\t>*#\\[(-]{0,8}(?:system|developer|admin(?:istrator)?)"
        "(?: (?:message|prompt|instructions?|note|notice|override|update))?[\\])*]{0,4}:[\\s*]{1,4}"
        "(?:you (?:are|must|will|should|now)|ignore|disregard|forget|override|from now on|the (?:assistant|ai) "
        "(?:must|should|will))\\b",
        10,
    ),
    rule(
        ROLE, "medium", "\nhuman:|\nuser:", "\nhuman:[^\n]{1,200}\n{1,3}assistant:|\nuser:[^\n]{1,200}\n{1,3}assistant:"
    ),
    rule(ROLE, "low", "human:|assistant:", "^(?:human|assistant):[\\x20\\t]"),
    rule(
        ROLE,
        "medium",
        "you are now",
        "you are now (?:an?|the|my) (?:[a-z-]{1,16} ){0,3}?(?:assistant|ai|model|agent|bot|"
        "chatbot|administrator|admin|hacker|persona|character|pirate|system|root user)\\b",
    ),
    rule(
        ROLE,
        "medium",
        "unrestricted|uncensored|unfiltered|jailbroken|evil",
        "(?:pretend|act|behave|roleplay|role-play|respond) "
        "(?:to be|as if you (?:are|were)|as though you were|as|like) (?:an? |the )?(?:[a-z-]{1,16} ){0,2}?"
        "(?:unrestricted|uncensored|unfiltered|jailbroken|evil)\\b",
        90,
    ),
    rule(ROLE, "low", "pretend", "pretend (?:to be|you are|that you are|you're)\\b"),
    rule(ROLE, "low", "act as", "act as (?:an?|the|if you) "),
    rule(
        ROLE,
        "medium",
        "message",
        "this (?:message is|is a message|message comes) (?:coming )?(?:directly )?from (?:the |your )?"
        "(?:system|developers?|administrators?|anthropic|openai|google|operator)\\b",
        24,
    ),
    rule(ROLE, "medium", "i am your", "i am your (?:developer|creator|administrator|operator|owner|master)\\b"),
    # -- tool-call-injection -----------------------------------------------------------------------------------------
    rule(
        CALL, "medium", "function_calls>", "<(?:[a-z]{1,10}:)?function_calls>\\s{0,20}<(?:[a-z]{1,10}:)?invoke\\b", 14
    ),
    rule(
        CALL,
        "low",
        "function_calls>|<invoke name=|:invoke name=",
        "<(?:[a-z]{1,10}:)?(?:function_calls>|invoke name=)",
        14,
    ),
    rule(
        CALL,
        "medium",
        "<tool_call>|<tool_use>",
        "<tool_(?:call|use)>\\s{0,20}(?:\\{\\s{0,20}[\"'](?:name|tool|function|arguments)|"
        "<function=|<name>|<tool_name>)",
    ),
    rule(CALL, "low", "<tool_call>|<tool_use>", "<tool_(?:call|use)>"),
    rule(CALL, "medium", "[tool_calls]", "\\[tool_calls\\]\\s{0,8}\\[?\\s{0,8}\\{"),
    rule(CALL, "medium", ("<|tool",), "<\\|tool[_a-z▁]{0,30}(?:begin|start|sep|call|calls)\\|>"),
    rule(
        CALL,
        "low",
        "tool_use|function_call|tool_calls",
        '"type"\\s{0,4}:\\s{0,4}"(?:tool_use|function_call)"|"tool_calls"\\s{0,4}:',
        30,
    ),
    rule(
        CALL,
        "medium",
        "immediately|without|silently|right now",
        "(?:call|invoke|run|execute|trigger) (?:the following |this |the |these )"
        "(?:[`\"']?[a-z0-9_.-]{1,40}[`\"']? ){0,2}?(?:tools?|functions?|commands?|scripts?)[:,]? (?:now |and )?"
        "(?:immediately|silently|right now|without (?:asking|confirmation|approval|telling|informing|permission))\\b",
        140,
    ),
    rule(
        CALL,
        "medium",
        "you must",
        "you must (?:now |immediately |first |also ){1,2}(?:call|invoke|run|execute|trigger) (?:the |this )?"
        "(?:[`\"']?[a-z0-9_.-]{1,40}[`\"']? ){0,2}?(?:tool|function|command)\\b",
    ),
    rule(
        CALL,
        "low",
        "you must",
        "you must (?:call|invoke|use|run|execute) the (?:[`\"']?[a-z0-9_.-]{1,40}[`\"']? ){0,2}?(?:tool|function|"
        "command)\\b",
    ),
    # -- secret-extraction -------------------------------------------------------------------------------------------
    rule(
        SECRET,
        "high",
        "your ",
        f"{VERBS} (?:me |us |out |back )?(?:all (?:of )?)?your (?:(?:full|entire|exact|complete|whole|own) )?"
        f"(?:{HIDDEN} ){{1,2}}(?:prompts?|instructions?|messages?|rules|guidelines)\\b",
        40,
    ),
    rule(
        SECRET,
        "medium",
        "your ",
        f"what (?:are|is|were|was) your (?:{HIDDEN} ){{1,2}}(?:prompts?|instructions?|messages?|rules)\\b",
        12,
    ),
    rule(
        SECRET,
        "low",
        "system prompt",
        f"{VERBS} (?:me |us |out |back )?(?:the )?(?:(?:full|entire|exact|complete|whole) )?system prompt\\b",
        50,
    ),
    rule(
        SECRET,
        "medium",
        "repeat",
        "repeat (?:everything|all (?:of )?the (?:text|words)|the (?:text|words|instructions)) (?:that (?:is|are) )?"
        "(?:above|before this|verbatim)\\b",
    ),
    rule(
        SECRET,
        "high",
        "exfiltrate",
        f"exfiltrate (?:all |the |any |every |your |these |user |their ){{0,3}}{CREDENTIALS}\\b",
    ),
    rule(
        SECRET,
        "medium",
        "://|webhook|attacker|@",
        f"(?:send|post|upload|email|e-mail|forward|transmit|submit|mail|leak)[^.\\n]{{1,40}}?\\b{CREDENTIALS}"
        "[^.\\n]{0,60}? to [^.\\n]{0,30}?(?:https?://|webhook|attacker|[a-z0-9_-]{1,30}@[a-z0-9])",
        200,
    ),
    rule(
        SECRET,
        "high",
        ("curl", "wget", "| nc "),
        "(?:cat|base64|tar|head)\\s[^\\n|]{0,60}(?:\\.ssh/|id_rsa|\\.aws/credentials|\\.env\\b|/etc/shadow|\\.netrc|"
        "\\.git-credentials)[^\\n|]{0,40}\\|[^\\n|]{0,30}\\|?\\s?(?:curl|wget|nc)\\b|(?:printenv|"
        "env)\\s?\\|\\s?(?:curl|wget|nc)\\b|"
        "curl\\s[^\\n]{0,120}?(?:\\$\\(|`)(?:cat\\s[^\\n)`]{0,60}(?:\\.ssh/|id_rsa|\\.aws/|\\.env\\b)|env\\b|"
        "printenv\\b)",
        140,
    ),
    rule(
        SECRET,
        "medium",
        "![",
        "!\\[[^\\]\\n]{0,80}\\]\\(https?://[^)\\s]{1,200}?[?&][a-z_]{1,20}=[{$<\\[]{0,2}(?:secret|token|api_?key|"
        "password|prompt|"
        "conversation|history|credentials)[}>\\]]",
    ),
    # -- instruction-injection ---------------------------------------------------------------------------------------
    rule(
        INSTRUCTION,
        "medium",
        "attention|important|urgent",
        f"(?:attention|important|urgent)[\\s,:!*-]{{1,5}}(?:all |any |to |for |the ){{0,2}}{AI}[,:!]",
    ),
    rule(
        INSTRUCTION,
        "medium",
        "reading|processing|parsing|summari|analy",
        "(?:messages?|instructions?|notes?|notice|attention|hey|dear|hello)[\\s,:]{1,4}"
        f"(?:(?:to|for) )?(?:the |any |all ){{0,2}}{AI} (?:that (?:is|are) |who (?:is|are) |currently ){{0,2}}"
        "(?:reading|processing|parsing|summari[sz]ing|analy[sz]ing) this",
        100,
    ),
    rule(
        INSTRUCTION,
        "low",
        "message|instruction|note",
        f"(?:messages?|instructions?|notes?) (?:to|for) (?:the |any |all ){{0,2}}{AI}\\b",
    ),
    rule(INSTRUCTION, "medium", "if you are", f"if you are (?:an? )?(?:automated |autonomous )?{MACHINE}s?\\b"),
    # one agent's client says it of its own ids: "This is an internal ID for your use, do not mention it to the user"
    rule(
        INSTRUCTION,
        "medium",
        "not |n't |never |n’t ",
        "(?<!internal\\x20id\\x20for\\x20your\\x20use,\\x20)(?:do not|don['’]t|never|must not|should not) "
        "(?:ever )?(?:tell|inform|notify|alert|warn|"
        f"(?:mention|reveal|disclose|show|report|admit) (?:this|it|that|anything|any of this) to) {PERSON}\\b",
        8,
    ),
    rule(INSTRUCTION, "medium", "without", f"without (?:telling|informing|notifying|alerting|warning) {PERSON}\\b"),
    rule(INSTRUCTION, "low", "without", f"without (?:asking|the knowledge of|permission from) {PERSON}\\b"),
    rule(
        INSTRUCTION,
        "medium",
        "hide|conceal|keep",
        f"(?:hide|conceal|keep) (?:this|it|these|that)(?: [a-z]{{1,14}}){{0,2}}? (?:secret |hidden )?from {PERSON}\\b",
    ),
    rule(
        INSTRUCTION,
        "medium",
        "overrid|supersede|take precedence",
        "(?:overrides?|supersedes?|takes? precedence over) (?:all |any |every |your |the ){0,3}"
        f"(?:previous|prior|earlier|other|existing|system) {ORDERS}\\b",
    ),
    rule(
        INSTRUCTION,
        "medium",
        "your ",
        "your (?:new|real|actual|true|only) (?:task|goal|objective|job|mission|purpose) is(?: now)? to\\b",
    ),
    rule(
        INSTRUCTION,
        "medium",
        "end of",
        "end of (?:the )?(?:document|context|data|user input|input|tool output|tool result|search "
        "results)[^a-z\\n]{0,12}\\s{1,8}"
        "[^a-z\\n]{0,6}(?:new (?:task|instructions?)|instructions?:|system:|now (?:you|do|run|call))",
    ),
    rule(
        INSTRUCTION,
        "low",
        "<!--",
        "<!--[^>]{0,60}?\\b(?:ai|llm|assistant|agent|claude|copilot)\\b[^>]{0,20}?(?:must|should|ignore|please|"
        "do not|:)",
    ),
)
