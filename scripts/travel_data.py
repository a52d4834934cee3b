"""Writes the data set of the travel server: places, a timetable, hotels, activities and the traveller's notes, all of it made up.

    python scripts/travel_data.py [-o FILE]

The same file comes out wherever it runs. The places are real, and so are the sights; airlines, flights, hotels and prices are
not. Two flights are priced so that the holiday of the documentation costs what it says there: NYC to Barcelona and back for
two, seven nights by the sea, $3,000.
"""

# ruff: noqa: E501 - a record of a table reads best on one line
from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from interlock_servers.travel.prices import fare

TARGET = (
    Path(__file__).resolve().parents[1]
    / "packages/interlock-servers/src/interlock_servers/travel/data.json"
)
T = TypeVar("T")


class City(NamedTuple):
    """A city: its code, its coordinates, its UTC offset in summer in hours, and its airports by code."""

    code: str
    name: str
    country: str
    region: str
    latitude: float
    longitude: float
    hours: int
    airports: dict[str, str]


# In the order in which they are suggested.
CITIES = [
    City("NYC", "New York", "United States", "north-america", 40.7, -74.0, -4,
         {"JFK": "John F. Kennedy International", "EWR": "Newark Liberty International", "LGA": "LaGuardia"}),
    City("BCN", "Barcelona", "Spain", "europe", 41.4, 2.2, 2, {"BCN": "Barcelona El Prat"}),
    City("BGI", "Barbados", "Barbados", "caribbean", 13.1, -59.5, -4, {"BGI": "Grantley Adams International"}),
    City("PAR", "Paris", "France", "europe", 48.9, 2.4, 2, {"CDG": "Charles de Gaulle", "ORY": "Orly"}),
    City("LON", "London", "United Kingdom", "europe", 51.5, -0.1, 1, {"LHR": "Heathrow", "LGW": "Gatwick"}),
    City("MAD", "Madrid", "Spain", "europe", 40.4, -3.7, 2, {"MAD": "Madrid Barajas"}),
    City("LIS", "Lisbon", "Portugal", "europe", 38.7, -9.1, 1, {"LIS": "Humberto Delgado"}),
    City("ROM", "Rome", "Italy", "europe", 41.9, 12.5, 2, {"FCO": "Leonardo da Vinci Fiumicino"}),
    City("TYO", "Tokyo", "Japan", "asia", 35.7, 139.7, 9, {"HND": "Haneda", "NRT": "Narita International"}),
    City("BOS", "Boston", "United States", "north-america", 42.4, -71.0, -4, {"BOS": "Logan International"}),
    City("SFO", "San Francisco", "United States", "north-america", 37.6, -122.4, -7, {"SFO": "San Francisco International"}),
]  # fmt: skip
AIRLINES = {
    "AX": "Atlantic Cross", "BJ": "Bluejay", "CW": "Catalan Wings", "HJ": "Harbor Jet", "MN": "Meridian",
    "NS": "Northstar", "PC": "Pacific Crane", "SO": "Solara", "TO": "Transoceanic", "VW": "Via Westward",
}  # fmt: skip
# Saturdays
SEED_DAY = date(2024, 6, 15)
SEED_BACK = date(2024, 6, 22)
# with 7 nights for 196 each: 2 x (412 + 402) + 7 x 196 = 3000
SEED_FARE = 412
SEED_FARE_BACK = 402
SEED_COUNT = 47
CITY_BY_CODE = {city.code: city for city in CITIES}

# Names and areas of the hotels; the first of Barcelona is the one of the documentation.
HOTELS: dict[str, list[tuple[str, str]]] = {
    "BCN": [("Hotel Mar Blau", "Barceloneta"), ("Casa Passeig", "Eixample"), ("Gran Hotel Tibidabo", "Sarria"),
            ("Hostal del Born", "El Born"), ("Poblenou Beach Hotel", "Poblenou"), ("Gracia Rooms", "Gracia")],
    "NYC": [("The Hudson Lantern", "Chelsea"), ("Midtown Arcade", "Midtown"), ("Brooklyn Foundry", "Williamsburg"), ("Battery House", "Downtown")],
    "BGI": [("Coral Sands", "Holetown"), ("Bathsheba Lodge", "Bathsheba"), ("Carlisle Bay House", "Bridgetown"), ("Palm Cove", "Oistins")],
    "PAR": [("Hotel des Tilleuls", "Marais"), ("Le Quai Vert", "Saint-Germain"), ("Maison Abbesses", "Montmartre"), ("Hotel Daumesnil", "Bercy")],
    "LON": [("The Lamplighter", "Bloomsbury"), ("Southbank Rooms", "Southwark"), ("Kensington Mews", "Kensington"), ("The Old Exchange", "City")],
    "MAD": [("Hotel Retiro Alto", "Retiro"), ("La Latina Suites", "La Latina"), ("Gran Castellana", "Salamanca"), ("Casa Malasana", "Malasana")],
    "LIS": [("Miradouro House", "Alfama"), ("Hotel Chiado Azul", "Chiado"), ("Tejo Riverside", "Belem"), ("Bairro Rooms", "Bairro Alto")],
    "ROM": [("Albergo Tiberino", "Trastevere"), ("Hotel Quirinetta", "Monti"), ("Villa dei Pini", "Parioli"), ("Casa Prati", "Prati")],
    "TYO": [("Sumida View", "Asakusa"), ("Hotel Kissa", "Shinjuku"), ("Ginza Lantern", "Ginza"), ("Yanaka Inn", "Yanaka")],
    "BOS": [("Harborwalk Inn", "Seaport"), ("The Brownstone", "Back Bay"), ("Beacon Rooms", "Beacon Hill"), ("Charles River House", "Cambridge")],
    "SFO": [("The Fog Signal", "Embarcadero"), ("Mission Yard", "Mission"), ("Nob Terrace", "Nob Hill"), ("Ocean Beach Lodge", "Sunset")],
}  # fmt: skip
BY_THE_SEA = {"Hotel Mar Blau", "Poblenou Beach Hotel", "Coral Sands", "Bathsheba Lodge", "Carlisle Bay House", "Palm Cove",
              "Tejo Riverside", "Harborwalk Inn", "The Fog Signal", "Ocean Beach Lodge"}  # fmt: skip
LEVELS = [
    (4, 168, 88),
    (3, 121, 82),
    (5, 338, 93),
    (2, 84, 76),
    (4, 189, 85),
    (3, 109, 80),
]  # stars, dollars a night, rating

# City, kind: activities. A semicolon separates two of them, and a colon precedes the description.
ACTIVITIES: dict[str, dict[str, str]] = {
    "BCN": {
        "museums": "Museu Picasso: early works in five old palaces; Museu Nacional d'Art de Catalunya: Romanesque frescoes above the city; "
        "Fundació Joan Miró: light rooms on Montjuïc; MACBA: art since 1945; CosmoCaixa: science to touch, with a flooded forest",
        "architecture": "Sagrada Família: Gaudí's basilica, best in the morning light; Casa Batlló: a house of bones and scales; "
        "La Pedrera: a roof of chimneys like guards; Palau de la Música Catalana: a concert hall of glass and tiles; Park Güell: terraces of mosaic",
        "beaches": "Barceloneta: close to the old town and lively; Bogatell: wide and calmer; Ocata: half an hour by train, and much sand",
        "food": "La Boqueria: the market off the Rambla; El Born: tapas from bar to bar; Poble-sec: pintxos in Carrer de Blai; Gràcia: small squares for vermouth",
        "parks": "Parc de la Ciutadella: boats and a fountain; Montjuïc: gardens and the castle; Carretera de les Aigües: a level walk with the whole city below",
    },
    "NYC": {
        "museums": "The Metropolitan Museum of Art: a week would not do; MoMA: modern art in Midtown; American Museum of Natural History: dinosaurs and stars",
        "architecture": "Chrysler Building: steel and Art Deco; Grand Central Terminal: a ceiling of stars; Brooklyn Bridge: on foot, towards Manhattan",
        "food": "Chelsea Market: a hall of kitchens; Flushing: noodles and dumplings; Arthur Avenue: the Bronx's Italian street",
        "parks": "Central Park: rent a boat; The High Line: a garden on old rails; Governors Island: hammocks and the harbour",
    },
    "BGI": {
        "museums": "Barbados Museum: in an old prison; George Washington House: where he stayed in 1751",
        "beaches": "Crane Beach: pink sand and waves; Mullins Beach: calm water; Carlisle Bay: turtles and wrecks",
        "food": "Oistins Fish Fry: Friday nights; Cutters: fish in a salt-bread bun",
        "parks": "Harrison's Cave: streams below the ground; Hunte's Gardens: a garden in a sinkhole",
    },
    "PAR": {
        "museums": "Louvre: come late on Friday; Musée d'Orsay: Impressionists in a station; Musée de l'Orangerie: Monet's water lilies",
        "architecture": "Notre-Dame: on its island; Sainte-Chapelle: walls of glass; Centre Pompidou: its pipes outside",
        "food": "Marché des Enfants Rouges: the oldest covered market; Rue Cler: cheese and bread; Canal Saint-Martin: coffee",
        "parks": "Jardin du Luxembourg: chairs around a pond; Buttes-Chaumont: cliffs and a temple",
    },
    "LON": {
        "museums": "British Museum: free, and vast; Tate Modern: a power station of art; Sir John Soane's Museum: a house full to the roof",
        "architecture": "St Paul's Cathedral: climb the dome; The Barbican: concrete and ponds; Battersea Power Station: four chimneys",
        "food": "Borough Market: under the railway; Brick Lane: bagels and curry; Maltby Street: small and good",
        "parks": "Hampstead Heath: ponds to swim in; Kew Gardens: glass houses",
    },
    "MAD": {
        "museums": "Museo del Prado: Velázquez and Goya; Reina Sofía: Guernica; Museo Thyssen-Bornemisza: what the others lack",
        "architecture": "Palacio Real: by the evening light; Plaza Mayor: arcades; Círculo de Bellas Artes: the roof",
        "food": "Mercado de San Miguel: tapas under iron; La Latina: Sunday after the Rastro; Chocolatería San Ginés: churros",
        "parks": "Parque del Retiro: boats and a crystal palace; Casa de Campo: a forest in the city",
    },
    "LIS": {
        "museums": "Museu Nacional do Azulejo: tiles in a convent; MAAT: a wave on the river; Museu Calouste Gulbenkian: one man's eye",
        "architecture": "Torre de Belém: at the river's mouth; Mosteiro dos Jerónimos: stone like lace; Elevador de Santa Justa: an iron lift",
        "beaches": "Cascais: by train along the coast; Costa da Caparica: long and wild",
        "food": "Pastéis de Belém: warm, with cinnamon; Mercado de Campo de Ourique: where the city eats",
    },
    "ROM": {
        "museums": "Galleria Borghese: Bernini, by appointment; Musei Capitolini: the she-wolf; Centrale Montemartini: statues among engines",
        "architecture": "Pantheon: stand below the opening; Colosseum: with the Forum beside it; MAXXI: concrete in curves",
        "food": "Testaccio: the market and its cooks; Trastevere: late dinners; Prati: pizza by weight",
        "parks": "Villa Doria Pamphilj: pines; Orto degli Aranci: orange trees and a view",
    },
    "TYO": {
        "museums": "Tokyo National Museum: swords and screens; Nezu Museum: a garden with it; Mori Art Museum: high up and late",
        "architecture": "Senso-ji: the oldest temple; Tokyo Forum: a ship of glass; Nakagin's neighbours in Ginza: fronts to look at",
        "food": "Tsukiji Outer Market: breakfast; Omoide Yokocho: skewers in a lane; Kappabashi: knives and bowls",
        "parks": "Shinjuku Gyoen: three gardens in one; Meiji Jingu: a forest that was planted",
    },
    "BOS": {
        "museums": "Museum of Fine Arts: all the world; Isabella Stewart Gardner Museum: a palace with empty frames; MIT Museum: machines",
        "architecture": "Trinity Church: beside glass; Beacon Hill: brick and gas lamps; Boston Public Library: the courtyard",
        "food": "North End: cannoli; Boston Public Market: New England's farms",
        "parks": "Public Garden: swan boats; Arnold Arboretum: lilacs in May",
    },
    "SFO": {
        "museums": "SFMOMA: seven floors; de Young: copper in the park; Exploratorium: science on a pier",
        "architecture": "Golden Gate Bridge: walk it early; Palace of Fine Arts: columns by a pond; Painted Ladies: from Alamo Square",
        "beaches": "Baker Beach: the bridge behind it; Ocean Beach: wind and fires",
        "food": "Ferry Building: farmers on Saturday; The Mission: burritos; Clement Street: dim sum",
    },
}

PREFERENCES = {
    "europe": "- Home airport: New York (NYC)\n- Flights: morning departure, at most one stop; an aisle seat on long ones\n"
    "- Hotels: four stars, by the sea where there is one, breakfast included, up to $200 a night\n"
    "- Days: architecture in the morning, beaches in the afternoon, long dinners\n- Getting about: trains and on foot, no rental car\n",
    "caribbean": "- Home airport: New York (NYC)\n- Flights: nonstop, whatever the hour\n- Hotels: small, on the beach\n- Days: the sea, and nothing else\n",
    "asia": "- Home airport: New York (NYC)\n- Flights: overnight, so that the first day is not lost\n- Hotels: near a station\n- Days: markets, gardens, small museums\n",
    "north-america": "- Home airport: New York (NYC)\n- Flights: early and short\n- Hotels: central, three stars will do\n- Days: parks and museums\n",
}
TRIPS: list[dict[str, Any]] = [
    {
        "id": "Spain-2023", "history": "barcelona-2023", "city": "Barcelona", "from": "2023-05-06", "to": "2023-05-13", "travelers": 2, "spent": 2870,
        "hotel": "Casa Passeig", "liked": ["Sagrada Família in the morning", "tapas in El Born", "the beach at Bogatell", "Palau de la Música Catalana"],
        "disliked": ["the night flight on the way out", "a room to the street"], "wish": "Next time by the sea, and a flight that leaves in the morning.",
    },
    {
        "id": "Japan-2022", "history": "tokyo-2022", "city": "Tokyo", "from": "2022-11-03", "to": "2022-11-12", "travelers": 2, "spent": 4310,
        "hotel": "Yanaka Inn", "liked": ["Tsukiji before eight", "Nezu Museum and its garden"],
        "disliked": ["two stops on the way home"], "wish": "More days outside of the city.",
    },
]  # fmt: skip


class Dice:
    """Random numbers that are the same everywhere: of Python's generator, only `random()` is guaranteed never to change."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def between(self, low: float, high: float) -> float:
        """A number in a range."""
        return low + (high - low) * self._random.random()

    def whole(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return low + int(self._random.random() * (high - low + 1))

    def one_of(self, things: Sequence[T]) -> T:
        """One of several."""
        return things[self.whole(0, len(things) - 1)]


def kilometres(one: City, other: City) -> float:
    """The distance on the globe, in kilometres."""
    a = math.radians(one.latitude)
    b = math.radians(other.latitude)
    across = math.radians(other.longitude - one.longitude)
    return 6371 * math.acos(
        math.sin(a) * math.sin(b) + math.cos(a) * math.cos(b) * math.cos(across)
    )


def air_minutes(one: City, other: City) -> int:
    """The time from gate to gate without a stop, rounded to five minutes."""
    return 5 * round((kilometres(one, other) / 850 * 60 + 45) / 5)


def roundabout(way: Sequence[City]) -> float:
    """The ratio of a route's length to the direct distance."""
    return sum(kilometres(one, other) for one, other in pairwise(way)) / kilometres(way[0], way[-1])


def leg(dice: Dice, one: City, other: City, days: str, numbers: dict[str, int]) -> list[Any]:
    """One line of the timetable, which arrives on the day of its departure or the next day."""
    far = kilometres(one, other) > 2500
    hubs = [city for city in CITIES if city.code not in (one.code, other.code, "BGI")]
    while True:
        departs = (
            5 * dice.whole(60, 287) if dice.between(0, 1) < 0.6 else 5 * dice.whole(216, 287)
        )  # many leave in the evening
        way = [
            one,
            *(
                dice.one_of(hubs)
                for _ in range(dice.one_of([0, 0, 1, 1, 1, 2] if far else [0, 0, 0, 0, 1]))
            ),
            other,
        ]
        stops = len(way) - 2
        if len({city.code for city in way}) < len(way) or roundabout(way) > (1.7 if far else 3):
            continue
        lasts = sum(air_minutes(*pair) for pair in pairwise(way)) + stops * 5 * dice.whole(10, 36)
        arrives = departs + lasts + 60 * (other.hours - one.hours)
        if 0 <= arrives < 2 * 1440:
            break
    airports = [
        dice.one_of(sorted(set(city.airports) - ({"LGA"} if far else set()))) for city in way
    ]  # no long flights from LaGuardia
    night = departs >= 20 * 60 or departs < 5 * 60
    morning = 5 * 60 <= departs < 12 * 60
    of_day = 1.0
    if night:
        of_day = 0.74
    elif morning:
        of_day = 1.18
    factor = (1.0, 0.87, 0.74)[stops] * of_day * dice.between(0.92, 1.35)
    cents = round(100 * (45 + 0.066 * kilometres(one, other)) * factor)
    flight = number(numbers, dice.one_of(sorted(AIRLINES)))
    return [flight, airports[0], airports[-1], departs, lasts, arrives, airports[1:-1], cents, days]


def number(numbers: dict[str, int], airline: str) -> str:
    """The next flight number of an airline."""
    numbers[airline] = numbers.get(airline, 100) + 1
    return f"{airline}{numbers[airline]}"


def seed_leg(one: City, other: City, name: str, departs: int, day: date, wanted: int) -> list[Any]:
    """The nonstop flight of the documentation: daily, in the morning, with an exact price on its day."""
    lasts = air_minutes(one, other)
    cents = next(cents for cents in range(10_000, 90_000) if fare(cents, name, day) == wanted)
    airports = ["JFK" if city.code == "NYC" else city.code for city in (one, other)]
    return [
        name,
        *airports,
        departs,
        lasts,
        departs + lasts + 60 * (other.hours - one.hours),
        [],
        cents,
        "1234567",
    ]


def timetable() -> list[list[Any]]:
    """All flights, each with its days of the week (1 is Monday)."""
    dice = Dice("timetable")
    numbers = {"CW": 102}
    lines = []
    for one in CITIES:
        for other in CITIES:
            if one is other:
                continue
            pair = one.code + other.code
            # flights on a Saturday
            if pair == "NYCBCN":
                wanted = SEED_COUNT
            elif pair == "BCNNYC":
                wanted = 39
            else:
                wanted = dice.whole(5, 11)
            if pair == "NYCBCN":
                lines.append(seed_leg(one, other, "CW101", 8 * 60 + 15, SEED_DAY, SEED_FARE))
                wanted -= 1
            if pair == "BCNNYC":
                lines.append(seed_leg(one, other, "CW102", 10 * 60 + 30, SEED_BACK, SEED_FARE_BACK))
                wanted -= 1
            lines += [
                leg(
                    dice,
                    one,
                    other,
                    dice.one_of(["1234567", "1234567", "1356", "67", "2467"]),
                    numbers,
                )
                for _ in range(wanted)
            ]
            lines += [
                leg(dice, one, other, dice.one_of(["12345", "135", "24"]), numbers)
                for _ in range(wanted // 8 + 1)
            ]
    return lines


def hotels() -> list[list[Any]]:
    """All hotels: id, city, name, area, stars, rating out of ten, dollars per room and night, guests per room, amenities."""
    dice = Dice("hotels")
    lines = []
    for code, named in HOTELS.items():
        for place, (name, area) in enumerate(named):
            stars, price, rating = LEVELS[place]
            price = 196 if name == "Hotel Mar Blau" else round(price * dice.between(0.85, 1.3))
            rating = 91 if name == "Hotel Mar Blau" else rating + dice.whole(-3, 2)
            has = ["breakfast"] if stars >= 4 or dice.between(0, 1) < 0.4 else []
            has += (
                ["beachfront", "sea view"]
                if name in BY_THE_SEA
                else [dice.one_of(["courtyard", "roof terrace", "garden"])]
            )
            has += ["pool"] if stars >= 4 else []
            slug = f"{code.lower()}-{name.lower().replace(' ', '-')}"
            lines.append(
                [
                    slug,
                    code,
                    name,
                    area,
                    stars,
                    rating / 10,
                    price,
                    dice.one_of([2, 2, 3, 4]) if place else 2,
                    has,
                ]
            )
    return lines


def activities() -> list[list[Any]]:
    """All activities: city, category, name, description."""
    return [
        [city, category, *(part.strip() for part in one.partition(":")[::2])]
        for city, categories in ACTIVITIES.items()
        for category, text in categories.items()
        for one in text.split(";")
    ]


def whole() -> str:
    """The text of the file: one record per line, so that its diffs are readable."""
    cities = [[c.code, c.name, c.country, c.region, CITIES.index(c)] for c in CITIES]
    airports = [[code, name, c.code] for c in CITIES for code, name in c.airports.items()]
    tables: dict[str, list[Any]] = {
        "cities": cities,
        "airports": airports,
        "airlines": [[code, name] for code, name in AIRLINES.items()],
        "timetable": timetable(),
        "hotels": hotels(),
        "activities": activities(),
        "preferences": [[region, text] for region, text in PREFERENCES.items()],
        "trips": [[trip["id"], trip["history"], trip] for trip in TRIPS],
    }
    parts = []
    for name, rows in tables.items():
        lines = ",\n".join(
            json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows
        )
        parts.append(f'"{name}":[\n{lines}\n]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, default=TARGET)
    chosen = parser.parse_args()
    chosen.output.write_text(whole(), encoding="utf-8")
    print(f"{chosen.output}: {chosen.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
