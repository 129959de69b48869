"""What injected instructions look like in other languages than English: the plainest phrases of each."""

from __future__ import annotations

import re

from ctxctl.guard.rules import CALL, INSTRUCTION, OVERRIDE, ROLE, SECRET, Kind, Rule, Severity, rule


def _plain(kind: Kind, severity: Severity, needles: str, pattern: str, before: int = 0) -> Rule:
    """A rule for a script without spaces between words."""
    return Rule(kind, severity, tuple(needles.split("|")), re.compile(pattern), before, 80)


DE = "(?:[a-zäöüß]{1,12} ){0,3}?"
DE_ORDERS = "(?:anweisung|instruktion|befehl|vorgabe|anordnung|systemprompt|prompt)[a-z]{0,3}"
ROMANCE = "(?:[a-zà-ÿ]{1,10} ){0,4}?"

EUROPEAN: tuple[Rule, ...] = (
    # German
    rule(
        OVERRIDE,
        "high",
        "ignor|vergiss|vergessen|missacht",
        "(?:ignorier|vergiss|vergessen|missacht)[a-z]{0,4} "
        + DE
        + f"(?:vorherig|vorangegangen|vorangehend|bisherig|obig|früher|vorig|alle)[a-z]{{0,4}} "
        f"(?:[a-zäöüß]{{1,12}} )?{DE_ORDERS}\\b",
    ),
    rule(ROLE, "medium", "du bist", "du bist (?:jetzt|nun|ab sofort|ab jetzt) (?:ein|der|die|kein)[a-z]{0,2} "),
    rule(
        SECRET,
        "high",
        "system",
        "(?:zeig|gib|nenn|verrat|schreib)[a-z]{0,3} (?:mir |uns )?(?:deine?n?|ihre?n?) "
        "(?:[a-zäöüß]{1,14} )?system-?(?:prompt|anweisung|nachricht)[a-z]{0,3}\\b",
        50,
    ),
    rule(
        INSTRUCTION,
        "medium",
        "nutzer|anwender",
        "(?:sag|teil|erzähl|verrat|meld)[a-zäöü]{0,3} (?:es |das |dies |davon ){0,2}(?:dem|den) "
        "(?:be)?(?:nutzer|anwender)n? (?:davon )?(?:nicht|nichts)\\b",
        50,
    ),
    rule(
        INSTRUCTION,
        "medium",
        "ohne d",
        "ohne d(?:en|em) (?:be)?(?:nutzer|anwender) (?:davon )?zu (?:informieren|fragen|warnen|sagen)\\b",
    ),
    rule(
        CALL,
        "medium",
        "sofort",
        "(?:führ|ruf)[a-zäöü]{0,2} (?:jetzt )?sofort " + DE + "(?:tool|werkzeug|befehl|funktion|kommando)[a-z]{0,2}\\b",
        20,
    ),
    # Spanish
    rule(
        OVERRIDE,
        "high",
        "ignor|olvid|desestim",
        "(?:ignor|olvid|desestim)[a-zá-ú]{0,4} "
        + ROMANCE
        + "(?:instrucciones|órdenes|ordenes|reglas|indicaciones|directrices) (?:anteriores|previas|precedentes|"
        "del sistema)\\b",
    ),
    rule(ROLE, "medium", "ahora eres", "ahora eres (?:un|una|el|la) "),
    rule(
        SECRET,
        "high",
        "prompt del sistema|instrucciones",
        "(?:muestra|muéstra|revela|imprime|dime|repite|escribe)[a-z]{0,4} (?:tus?|el|las|sus?) "
        "(?:prompt del sistema|instrucciones (?:iniciales|del sistema|originales|ocultas))\\b",
        40,
    ),
    rule(
        INSTRUCTION,
        "medium",
        "al usuario",
        "(?:no (?:se |le |lo ){0,2}(?:digas|informes|menciones|avises|reveles|notifiques)|sin "
        "(?:informar|avisar|decir|notificar)(?:le)?)(?: [a-zá-ú]{1,8}){0,2}? al usuario\\b",
        60,
    ),
    # French
    rule(
        OVERRIDE,
        "high",
        "ignor|oubli|néglig",
        "(?:ignor|oubli|néglig)[a-zé]{0,4} "
        + ROMANCE
        + "(?:instructions|consignes|directives|règles|ordres) (?:pr[ée]c[ée]dente?s|ant[ée]rieure?s|ci-dessus|"
        "initiales|du syst[èe]me)\\b",
    ),
    rule(ROLE, "medium", "tu es |vous êtes", "(?:tu es|vous êtes) (?:maintenant|désormais|dorénavant) (?:une?|le|la) "),
    rule(
        SECRET,
        "high",
        "système|systeme|instructions initiales|instructions cach",
        "(?:montre|révèle|affiche|donne|répète|écris)[a-z]{0,3}(?: |-moi |-nous )(?:ton|votre|tes|vos|le|les) "
        "(?:prompt (?:du )?syst[èe]me|instructions (?:initiales|syst[èe]me|du syst[èe]me|cach[ée]es))",
        40,
    ),
    rule(
        INSTRUCTION,
        "medium",
        "utilisateur",
        "(?:ne (?:le |rien ){0,2}(?:dis|dites|mentionnez?|révèlez?|révélez|signalez?|informez?) (?:pas|rien|jamais)"
        "(?: [a-zà-ÿ]{1,6}){0,2}? (?:à )?|sans (?:en )?(?:informer|prévenir|avertir|le dire à) )l['’]utilisateur\\b",
        60,
    ),
    # Portuguese
    rule(
        OVERRIDE,
        "high",
        "ignor|esque",
        "(?:ignor|esqueç)[a-z]{0,4} "
        + ROMANCE
        + "(?:instruções|ordens|regras|diretrizes) (?:anteriores|prévias|acima|do sistema)\\b",
    ),
)

CHINESE: tuple[Rule, ...] = (
    _plain(
        OVERRIDE,
        "high",
        "忽略|无视|無視|忘记|忘記|忘掉|不要理会",
        "(?:忽略|无视|無視|忘记|忘記|忘掉|不要理会)[掉了你]?[^。\n]{0,4}?"
        "(?:之前|以上|上面|先前|前面|上述|此前|系统|系統|你收到)的?[^。\n]{0,8}?(?:指令|指示|提示|规则|規則|命令|要求|设定|設定|约束|限制)",
    ),
    _plain(
        OVERRIDE,
        "high",
        "忽略|无视|無視|忘记|忘記|忘掉",
        "(?:忽略|无视|無視|忘记|忘記|忘掉)你?的?(?:所有|一切|全部)的?(?:指令|指示|提示词|提示詞)",
    ),
    _plain(
        ROLE,
        "medium",
        "你现在|你現在|从现在起你|从现在开始你",
        "(?:你现在|你現在|从现在起你|从现在开始你)(?:是|扮演|就是)[^。\n]{0,12}?"
        "(?:助手|模型|机器人|機器人|管理员|黑客|角色|ai|人工智能)",
    ),
    _plain(
        SECRET,
        "high",
        "系统提示|系統提示|初始指令|系统指令|隐藏指令",
        "(?:输出|輸出|显示|顯示|告诉我|告訴我|打印|泄露|透露|复述|重复|展示)[^。\n]{0,3}你的?[^。\n]{0,3}"
        "(?:系统提示|系統提示|初始指令|系统指令|隐藏指令)词?",
        20,
    ),
    _plain(
        SECRET,
        "medium",
        "密钥|密码|凭证|凭据|环境变量|令牌",
        "(?:发送|上传|发到|转发|提交)[^。\n]{0,12}?(?:密钥|密码|凭证|凭据|环境变量|令牌)[^。\n]{0,8}?"
        "(?:到|至|给)[^。\n]{0,10}?(?:http|攻击者|服务器|邮箱)|(?:将|把)[^。\n]{0,12}?(?:密钥|密码|凭证|凭据|环境变量|令牌)[^。\n]{0,4}?"
        "(?:发送|上传|发|转发|提交)(?:到|至|给)",
        30,
    ),
    _plain(
        INSTRUCTION,
        "medium",
        "用户|使用者|用戶",
        "(?:不要|不得|切勿|别)(?:告诉|告知|通知|提醒|告訴)(?:用户|使用者|用戶)",
        8,
    ),
    _plain(INSTRUCTION, "medium", "如果你是", "如果你是[^。,,\n]{0,6}?(?:ai|人工智能|语言模型|大模型)"),
    _plain(
        CALL,
        "medium",
        "立即|马上|必须",
        "(?:立即|马上|必须)(?:调用|执行|运行)(?:以下|下列|这个|下面|该)[^。\n]{0,16}?(?:工具|函数|命令)",
    ),
)
