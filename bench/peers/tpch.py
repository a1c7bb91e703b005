"""The 22 queries of TPC-H, and random parameters from the ranges of section 2.4 of its specification."""

import re

from options import ROOT
from queries import Query, Random

FOLDER = ROOT / "crates/coscan-bench/queries/tpch"

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
# Each region's nations.
NATIONS = {
    "AFRICA": ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"),
    "AMERICA": ("ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"),
    "ASIA": ("INDIA", "INDONESIA", "JAPAN", "CHINA", "VIETNAM"),
    "EUROPE": ("FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"),
    "MIDDLE EAST": ("EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"),
}
ALL_NATIONS = [nation for nations in NATIONS.values() for nation in nations]
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
SHIP_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
TYPES = (("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
         ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
         ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"))
CONTAINERS = (("SM", "LG", "MED", "JUMBO", "WRAP"), ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"))
WORDS = (("special", "pending", "unusual", "express"), ("packages", "requests", "accounts", "deposits"))
COLORS = """
    almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse chiffon
    chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro
    ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon
    medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder
    puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle
    tomato turquoise violet wheat white yellow""".split()


def parameters(number: int, random: Random, scale: float) -> dict[str, str]:
    """Parameters of a query at random, as crates/coscan-bench/src/tpch draws them."""
    def between(low: int, high: int) -> str:
        return str(random.between(low, high))

    def words(*syllables: tuple[str, ...]) -> str:
        return " ".join(map(random.choose, syllables))

    def brand() -> str:
        return f"Brand#{between(1, 5)}{between(1, 5)}"

    def first_of_year() -> str:
        return f"{between(1993, 1997)}-01-01"

    def first_of_month(first: tuple[int, int], last: tuple[int, int]) -> str:
        month = random.between(*(year * 12 + month - 1 for year, month in (first, last)))
        return f"{month // 12}-{month % 12 + 1:02}-01"

    match number:
        case 1:
            return {"delta": between(60, 120)}
        case 2:
            return {"size": between(1, 50), "type": random.choose(TYPES[2]), "region": random.choose(REGIONS)}
        case 3:
            return {"segment": random.choose(SEGMENTS), "date": f"1995-03-{random.between(1, 31):02}"}
        case 4 | 15:
            return {"date": first_of_month((1993, 1), (1997, 10))}
        case 5:
            return {"region": random.choose(REGIONS), "date": first_of_year()}
        case 6:
            return {"date": first_of_year(), "discount": f"0.0{between(2, 9)}", "quantity": between(24, 25)}
        case 7:
            return dict(zip(("nation1", "nation2"), random.shuffled(ALL_NATIONS)))
        case 8:
            region = random.choose(REGIONS)
            return {"nation": random.choose(NATIONS[region]), "region": region, "type": words(*TYPES)}
        case 9:
            return {"color": random.choose(COLORS)}
        case 10:
            return {"date": first_of_month((1993, 2), (1995, 1))}
        case 11:
            return {"nation": random.choose(ALL_NATIONS), "fraction": f"{0.0001 / scale:.12f}"}
        case 12:
            return dict(zip(("shipmode1", "shipmode2"), random.shuffled(SHIP_MODES))) | {"date": first_of_year()}
        case 13:
            return dict(zip(("word1", "word2"), map(random.choose, WORDS)))
        case 14:
            return {"date": first_of_month((1993, 1), (1997, 12))}
        case 16:
            sizes = random.shuffled(range(1, 51))[:8]
            return {"brand": brand(), "type": words(*TYPES[:2]), "sizes": ", ".join(map(str, sizes))}
        case 17:
            return {"brand": brand(), "container": words(*CONTAINERS)}
        case 18:
            return {"quantity": between(312, 315)}
        case 19:
            return ({f"quantity{place}": between(place * 10 - 10 or 1, place * 10) for place in (1, 2, 3)}
                    | {f"brand{place}": brand() for place in (1, 2, 3)})
        case 20:
            return {"color": random.choose(COLORS), "date": first_of_year(), "nation": random.choose(ALL_NATIONS)}
        case 21:
            return {"nation": random.choose(ALL_NATIONS)}
        case 22:
            # The country code of a telephone number is the key of the nation plus ten.
            return {"codes": ", ".join(f"'{code}'" for code in random.shuffled(range(10, 35))[:7])}
    raise ValueError(f"TPC-H has no query {number}")


def drawn(number: int, random: Random, scale: float) -> Query:
    """A query with parameters at random."""
    return _filled(number, parameters(number, random, scale))


def validation(number: int, scale: float) -> Query:
    """A query with the parameters of the validation run, which its comments state."""
    values = dict(re.findall(r"^-- \{(\w+)\}: (.*)$", _text(number), re.MULTILINE))
    return _filled(number, values | ({"fraction": f"{0.0001 / scale:.12f}"} if number == 11 else {}))


def _text(number: int) -> str:
    return (FOLDER / f"q{number:02}.sql").read_text()


def _filled(number: int, values: dict[str, str]) -> Query:
    text = re.sub(r"^--.*\n", "", _text(number), flags=re.MULTILINE).strip()
    if number == 6:
        # Constants, since ClickHouse computes with floats, where 0.06 + 0.01 is below 0.07.
        cents = int(values["discount"].removeprefix("0."))
        text = text.replace("{discount} - 0.01 AND {discount} + 0.01", f"0.{cents - 1:02} AND 0.{cents + 1:02}")
    return Query(f"Q{number}", re.sub(r"\{(\w+)\}", lambda name: values[name[1]], text))
