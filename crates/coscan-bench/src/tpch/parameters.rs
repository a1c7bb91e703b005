//! Random parameters of the queries, from the ranges that section 2.4 of the TPC-H specification gives.

use coscan_sim::Random;
use tpchgen::distribution::Distributions;

use super::queries::Template;

/// The name and the value of each parameter of a query.
type Values = Vec<(&'static str, String)>;

const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];
const SEGMENTS: [&str; 5] = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"];
const SHIP_MODES: [&str; 7] = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"];
/// The three syllables of the type of a part.
const TYPES: ([&str; 6], [&str; 5], [&str; 5]) = (
    ["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"],
    ["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"],
    ["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"],
);
/// The two syllables of the container of a part.
const CONTAINERS: ([&str; 5], [&str; 8]) = (
    ["SM", "LG", "MED", "JUMBO", "WRAP"],
    ["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"],
);
/// The words of Q13.
const WORDS: ([&str; 4], [&str; 4]) = (
    ["special", "pending", "unusual", "express"],
    ["packages", "requests", "accounts", "deposits"],
);
/// The nations by key, each with the index of its region in [`REGIONS`].
const NATIONS: [(&str, usize); 25] = [
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
];

/// Draws the parameters of queries, and their order.
#[derive(Debug)]
pub struct Parameters {
    random: Random,
    scale_factor: f64,
}

impl Parameters {
    /// Creates a generator. Equal seeds give equal parameters.
    pub fn new(seed: u64, scale_factor: f64) -> Self {
        Self { random: Random::new(seed), scale_factor }
    }

    /// All of the items in random order.
    pub fn shuffled<T: Copy>(&mut self, items: &[T]) -> Vec<T> {
        let mut items = items.to_vec();
        self.random.shuffle(&mut items);
        items
    }

    /// The parameters of a query.
    pub fn draw(&mut self, template: &Template) -> Values {
        match template.number {
            1 => vec![("delta", self.number(60, 120))],
            2 => vec![
                ("size", self.number(1, 50)),
                ("type", self.one_of(&TYPES.2)),
                ("region", self.one_of(&REGIONS)),
            ],
            3 => vec![
                ("segment", self.one_of(&SEGMENTS)),
                ("date", format!("1995-03-{:02}", self.random.between(1, 31))),
            ],
            4 | 15 => vec![("date", self.month(1993 * 12, 1997 * 12 + 9))],
            5 => vec![("region", self.one_of(&REGIONS)), ("date", self.year())],
            6 => vec![
                ("date", self.year()),
                ("discount", format!("0.0{}", self.random.between(2, 9))),
                ("quantity", self.number(24, 25)),
            ],
            7 => {
                let nations = self.shuffled(&NATIONS);
                vec![("nation1", nations[0].0.to_owned()), ("nation2", nations[1].0.to_owned())]
            }
            8 => {
                let (nation, region) = *self.random.choose(&NATIONS);
                let part_type =
                    format!("{} {}", self.two_of(TYPES.0, TYPES.1), self.one_of(&TYPES.2));
                vec![
                    ("nation", nation.to_owned()),
                    ("region", REGIONS[region].to_owned()),
                    ("type", part_type),
                ]
            }
            9 => vec![("color", self.color())],
            10 => vec![("date", self.month(1993 * 12 + 1, 1995 * 12))],
            11 => vec![
                ("nation", self.nation()),
                ("fraction", format!("{:.12}", 0.0001 / self.scale_factor)),
            ],
            12 => {
                let modes = self.shuffled(&SHIP_MODES);
                vec![
                    ("shipmode1", modes[0].to_owned()),
                    ("shipmode2", modes[1].to_owned()),
                    ("date", self.year()),
                ]
            }
            13 => vec![("word1", self.one_of(&WORDS.0)), ("word2", self.one_of(&WORDS.1))],
            14 => vec![("date", self.month(1993 * 12, 1997 * 12 + 11))],
            _ => self.draw_later(template.number),
        }
    }

    /// The parameters of Q16 to Q22.
    fn draw_later(&mut self, number: u8) -> Values {
        match number {
            16 => vec![
                ("brand", self.brand()),
                ("type", self.two_of(TYPES.0, TYPES.1)),
                ("sizes", {
                    let sizes = self.shuffled(&(1..=50).collect::<Vec<u8>>());
                    sizes[..8].iter().map(u8::to_string).collect::<Vec<_>>().join(", ")
                }),
            ],
            17 => vec![
                ("brand", self.brand()),
                ("container", self.two_of(CONTAINERS.0, CONTAINERS.1)),
            ],
            18 => vec![("quantity", self.number(312, 315))],
            19 => vec![
                ("quantity1", self.number(1, 10)),
                ("quantity2", self.number(10, 20)),
                ("quantity3", self.number(20, 30)),
                ("brand1", self.brand()),
                ("brand2", self.brand()),
                ("brand3", self.brand()),
            ],
            20 => vec![("color", self.color()), ("date", self.year()), ("nation", self.nation())],
            21 => vec![("nation", self.nation())],
            _ => {
                // The country code of a telephone number is the key of the nation plus ten.
                let codes = self.shuffled(&(10..10 + NATIONS.len()).collect::<Vec<_>>());
                let codes = codes[..7].iter().map(|code| format!("'{code}'"));
                vec![("codes", codes.collect::<Vec<_>>().join(", "))]
            }
        }
    }

    fn number(&mut self, low: u64, high: u64) -> String {
        self.random.between(low, high).to_string()
    }

    fn one_of(&mut self, texts: &[&str]) -> String {
        (*self.random.choose(texts)).to_owned()
    }

    fn two_of<const N: usize, const M: usize>(
        &mut self,
        first: [&str; N],
        second: [&str; M],
    ) -> String {
        format!("{} {}", self.random.choose(&first), self.random.choose(&second))
    }

    fn nation(&mut self) -> String {
        self.random.choose(&NATIONS).0.to_owned()
    }

    fn color(&mut self) -> String {
        self.one_of(Distributions::static_default().part_colors().get_values())
    }

    fn brand(&mut self) -> String {
        format!("Brand#{}{}", self.random.between(1, 5), self.random.between(1, 5))
    }

    /// The first day of a year.
    fn year(&mut self) -> String {
        format!("{}-01-01", self.random.between(1993, 1997))
    }

    /// The first day of a month. Months are counted from the year 0.
    fn month(&mut self, first: u64, last: u64) -> String {
        let month = self.random.between(first, last);
        format!("{}-{:02}-01", month / 12, month % 12 + 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::tpch::queries::TEMPLATES;

    #[test]
    fn every_parameter_is_drawn_and_equal_seeds_draw_equal_values() {
        let (mut one, mut other) = (Parameters::new(7, 1.0), Parameters::new(7, 1.0));
        for template in TEMPLATES {
            let values = one.draw(&template);
            let names = |values: &Values| values.iter().map(|(name, _)| *name).collect::<Vec<_>>();
            assert_eq!(
                names(&values),
                names(&template.validation_parameters(0.01)),
                "{template:?}"
            );
            assert_eq!(values, other.draw(&template));
        }
    }

    #[test]
    fn the_values_of_the_validation_run_are_among_those_drawn() {
        // Q18 has another value. Sizes and codes are sets.
        let mut parameters = Parameters::new(1, 0.01);
        for template in TEMPLATES.iter().filter(|template| template.number != 18) {
            let mut drawn: Vec<BTreeSet<String>> = Vec::new();
            for _ in 0..5000 {
                let values = parameters.draw(template);
                drawn.resize_with(values.len(), BTreeSet::new);
                for (set, (_, value)) in drawn.iter_mut().zip(values) {
                    set.insert(value);
                }
            }
            for (set, (name, value)) in drawn.iter().zip(template.validation_parameters(0.01)) {
                let is_number = value.parse::<f64>().is_ok();
                let is_drawn = set.contains(&value)
                    || is_number && set.iter().any(|drawn| drawn.parse() == value.parse::<f64>());
                assert!(is_drawn || ["sizes", "codes"].contains(&name), "{name} of {template:?}");
            }
        }
    }

    #[test]
    fn months_are_those_of_the_specification() {
        let mut parameters = Parameters::new(1, 1.0);
        let mut months = |number: usize| {
            let draws = (0..5000).map(|_| parameters.draw(&TEMPLATES[number - 1]).remove(0).1);
            let months: BTreeSet<String> = draws.collect();
            (
                months.first().cloned().unwrap_or_default(),
                months.last().cloned().unwrap_or_default(),
            )
        };
        let between = |first: &str, last: &str| (first.to_owned(), last.to_owned());
        assert_eq!(months(4), between("1993-01-01", "1997-10-01"));
        assert_eq!(months(10), between("1993-02-01", "1995-01-01"));
        assert_eq!(months(14), between("1993-01-01", "1997-12-01"));
    }
}
