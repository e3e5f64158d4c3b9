"""The codes of ``hreflang``: how Google writes them, and which it does not understand.

A language of ISO 639-1, and then perhaps a script of ISO 15924 and a region of ISO 3166-1; or
``x-default`` (Google, "Tell Google about localized versions of your page").
"""

import re
from functools import lru_cache
from typing import Any

from django_sitemapkit.exceptions import InvalidValue
from django_sitemapkit.printable import quoted

X_DEFAULT = "x-default"
"""The version for readers of all other languages."""

_LANGUAGES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da"
    " de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy"
    " hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg"
    " li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or"
    " os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta"
    " te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
LANGUAGES = frozenset(_LANGUAGES.split())
"""The 183 languages of ISO 639-1."""

_REGIONS = (
    "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR"
    " BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ"
    " EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW"
    " GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY"
    " KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV"
    " MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY"
    " QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG"
    " TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM"
    " ZW"
)
REGIONS = frozenset(_REGIONS.split())
"""The 249 regions of ISO 3166-1; the United Kingdom is GB."""

_CHINESE = {
    frozenset({"hant"}): "zh-tw",
    frozenset({"hans"}): "zh-cn",
    frozenset({"tw", "hk", "mo"}): "zh-tw",
    frozenset({"cn", "sg", "my"}): "zh-cn",
}
"""What news has for Chinese by its script, else by its region."""

_CODE = re.compile(r"[a-z]{2,8}(?:-[a-z0-9]{1,8}){0,4}", re.IGNORECASE | re.ASCII)
_UNDERSTOOD = re.compile(r"([a-z]+)(?:-[A-Z][a-z]{3})?(?:-([A-Z]{2}))?")


def format_hreflang(code: str) -> str:
    """Return a language code as Google writes it: ``zh-Hant-TW``, ``en-GB``, ``x-default``.

    Django's codes are accepted (``zh-hans``, ``pt-br``), in any case. Raises InvalidValue for what
    cannot be a code; ``hreflang_doubt`` says which of the others Google does not understand.
    """
    if not isinstance(code, str):
        raise _invalid_code(code)
    return _formatted_code(code)


def hreflang_doubt(code: str) -> str:
    """Return a sentence that says why Google does not understand a language code, or "" if it does.

    Raises InvalidValue as ``format_hreflang`` does.
    """
    code = format_hreflang(code)
    if code == X_DEFAULT:
        return ""
    language, *rest = code.split("-")
    if language not in LANGUAGES:
        alone = not rest and language.upper() in REGIONS
        what = "a region without a language" if alone else "not a language of ISO 639-1"
        return f"{language} is {what}."
    understood = _UNDERSTOOD.fullmatch(code)
    if understood is None:
        return (
            f"{code} is not understood: after the language there may be a script of ISO 15924 and"
            " a region of ISO 3166-1, two letters, and nothing else."
        )
    region = understood[2]
    if region and region not in REGIONS:
        instead = "; write GB" if region == "UK" else ""
        return f"{region} in {code} is not a region of ISO 3166-1{instead}."
    return ""


def news_language(code: Any) -> Any:
    """Return a language code as news has it: ``en`` for ``en-us``, ``zh-tw`` for ``zh-hant``.

    Google accepts a language alone, except for Chinese in its two scripts. What cannot be a code is
    returned unchanged, for the rule of the tag to judge.
    """
    if not isinstance(code, str) or not _CODE.fullmatch(code := code.replace("_", "-").lower()):
        return code
    language, *rest = code.split("-")
    if language == "zh":
        for names, written in _CHINESE.items():
            if names.intersection(rest):
                return written
    return language


@lru_cache(maxsize=512)
def _formatted_code(code: str) -> str:
    """Return what ``format_hreflang`` does, for a string; results are cached."""
    if code.lower() == X_DEFAULT:
        return X_DEFAULT
    if not _CODE.fullmatch(code):
        raise _invalid_code(code)
    language, *rest = code.lower().split("-")
    return "-".join([language, *map(_formatted_subtag, rest)])


def _formatted_subtag(subtag: str) -> str:
    """Return a script in title case, a region in upper case, and another subtag as it is."""
    if len(subtag) == 4 and subtag.isalpha():
        return subtag.title()
    return subtag.upper() if len(subtag) == 2 else subtag


def _invalid_code(code: object) -> InvalidValue:
    return InvalidValue(
        "invalid-attribute-value",
        f"Invalid attribute value: hreflang {quoted(code)} is not a language code; write one as in"
        " en-GB, or x-default.",
    )
