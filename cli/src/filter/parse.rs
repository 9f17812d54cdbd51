//! From words to an expression. The grammar is that of ssfilter.y in iproute2; words need no blanks between them here:
//!
//! ```text
//! chain:     term { ["and" | "or"] term }
//! term:      "not" term | "(" chain ")" | predicate
//! predicate: ("src" | "dst") ["=" | "!="] HOST | ("sport" | "dport") [comparison] PORT
//! ```

use onramp_loader::algorithm::did_you_mean;

use super::host::{self, Family};
use super::{Comparison, Expression, Host, Operator, Port, Side};

/// How deep parentheses and negations may lie in each other.
const DEPTH: usize = 64;

/// What ss(8) knows and this does not, with what to do.
const NOT_HERE: [(&str, &str); 6] = [
    ("state", "leave it out: onramp follows connections once they send"),
    ("exclude", "leave it out: onramp follows connections once they send"),
    ("dev", "give addresses or ports"),
    ("fwmark", "give addresses or ports"),
    ("cgroup", "give addresses or ports"),
    ("autobound", "give the range of ports, such as sport >= :32768"),
];

/// The expression of a filter; none: it is empty.
pub(super) fn parse(text: &str) -> Result<Option<Expression>, String> {
    let words = words(text);
    if words.is_empty() {
        return Ok(None);
    }
    let mut parser = Parser { words: &words, at: 0, depth: 0, family: None };
    let expression = parser.chain()?;
    match parser.next() {
        None => Ok(Some(parser.within_family(expression))),
        Some(word) => Err(format!("{word:?} closes a parenthesis that was not opened")),
    }
}

/// Words, and operators that stand against them.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '(' | ')' => 1,
            '!' | '=' | '<' | '>' | '&' | '|' => {
                let two = rest.get(..2).unwrap_or_default();
                if ["!=", "==", "<=", ">=", "&&", "||"].contains(&two) { 2 } else { 1 }
            }
            _ => {
                let ends = |c: char| c.is_whitespace() || "()!=<>&|".contains(c);
                rest.find(ends).unwrap_or(rest.len())
            }
        };
        let (word, after) = rest.split_at(length);
        words.push(word);
        rest = after.trim_start();
    }
    words
}

struct Parser<'a> {
    words: &'a [&'a str],
    at: usize,
    depth: usize,
    /// What one of the conditions names. As ss has it, all flows are of it, whatever the other conditions say.
    family: Option<Family>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).copied()
    }

    fn next(&mut self) -> Option<&'a str> {
        let word = self.peek();
        self.at += 1;
        word
    }

    fn next_if<T>(&mut self, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let read = read(self.peek()?);
        self.at += usize::from(read.is_some());
        read
    }

    fn chain(&mut self) -> Result<Expression, String> {
        let first = self.term()?;
        let mut rest = Vec::new();
        while self.peek().is_some_and(|word| word != ")") {
            let operator = self.next_if(operator);
            rest.push((operator.unwrap_or(Operator::And), self.term()?));
        }
        Ok(if rest.is_empty() { first } else { Expression::Chain(Box::new(first), rest) })
    }

    fn term(&mut self) -> Result<Expression, String> {
        let before = self.at.checked_sub(1).and_then(|at| self.words.get(at));
        let Some(word) = self.next() else {
            let last = before.copied().unwrap_or_default();
            return Err(format!("{last:?} at the end of the filter needs a condition behind it"));
        };
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(format!(
                "{word:?}: parentheses and negations lie more than {DEPTH} deep in each other"
            ));
        }
        let term = match word {
            "!" | "not" => Expression::Not(Box::new(self.term()?)),
            "(" => {
                let inner = self.chain()?;
                if self.next() != Some(")") {
                    return Err("\"(\" is not closed: write \")\" behind its conditions".into());
                }
                inner
            }
            "src" => self.host(word, Side::Local)?,
            "dst" => self.host(word, Side::Remote)?,
            "sport" => self.port(word, Side::Local)?,
            "dport" => self.port(word, Side::Remote)?,
            _ => return Err(unknown(word)),
        };
        self.depth -= 1;
        Ok(term)
    }

    fn host(&mut self, word: &str, side: Side) -> Result<Expression, String> {
        let comparison = self.next_if(comparison).unwrap_or(Comparison::Equal);
        let negated = match comparison {
            Comparison::Equal => false,
            Comparison::NotEqual => true,
            _ => {
                let operator = self.words[self.at - 1];
                return Err(format!("{operator:?} compares ports: write it behind sport or dport"));
            }
        };
        let value = self.value(word)?;
        let rest = self.family(value)?;
        let (prefix, port) = host::host(self.family, rest)
            .map_err(|why| if rest == value { why } else { format!("{value:?}: {why}") })?;
        let host = Expression::Host(Host { side, prefix, port });
        Ok(if negated { Expression::Not(Box::new(host)) } else { host })
    }

    fn port(&mut self, word: &str, side: Side) -> Result<Expression, String> {
        let comparison = self.next_if(comparison).unwrap_or(Comparison::Equal);
        let value = self.value(word)?;
        let port = host::port_alone(self.family(value)?)?;
        if port.is_none() && comparison != Comparison::Equal {
            return Err(format!("{word:?} with \"*\" is any port, which is not compared: give a number"));
        }
        Ok(Expression::Port(Port { side, comparison, port }))
    }

    /// Reads the family before a value; returns what stands behind it.
    fn family<'v>(&mut self, value: &'v str) -> Result<&'v str, String> {
        let (family, rest) = host::family(value)?;
        match (self.family, family) {
            (Some(before), Some(now)) if before != now => Err(format!(
                "{value:?}: a family holds for the whole filter, and it has {:?} already: leave one of both out",
                before.name()
            )),
            _ => {
                self.family = self.family.or(family);
                Ok(rest)
            }
        }
    }

    fn within_family(&self, expression: Expression) -> Expression {
        let Some(family) = self.family else { return expression };
        let host = Host { side: Side::Remote, prefix: Some(family.addresses()), port: None };
        Expression::Chain(Box::new(expression), vec![(Operator::And, Expression::Host(host))])
    }

    fn value(&mut self, word: &str) -> Result<&'a str, String> {
        match self.next() {
            Some(value) if comparison(value).is_some() => {
                Err(format!("{value:?} stands where {word:?} needs a value"))
            }
            Some(value) if operator(value).is_some() || ["(", ")", "!", "not"].contains(&value) => {
                Err(format!("{word:?} needs a value before {value:?}"))
            }
            Some(value) => Ok(value),
            None => Err(format!("{word:?} at the end of the filter needs a value")),
        }
    }
}

fn operator(word: &str) -> Option<Operator> {
    match word {
        "&" | "&&" | "and" => Some(Operator::And),
        "|" | "||" | "or" => Some(Operator::Or),
        _ => None,
    }
}

fn comparison(word: &str) -> Option<Comparison> {
    match word {
        "=" | "==" | "eq" => Some(Comparison::Equal),
        "!=" | "ne" | "neq" => Some(Comparison::NotEqual),
        "<" | "lt" => Some(Comparison::Less),
        "<=" | "le" | "leq" => Some(Comparison::LessOrEqual),
        ">" | "gt" => Some(Comparison::Greater),
        ">=" | "ge" | "geq" => Some(Comparison::GreaterOrEqual),
        _ => None,
    }
}

fn unknown(word: &str) -> String {
    if let Some((_, instead)) = NOT_HERE.iter().find(|(known, _)| *known == word) {
        return format!("{word:?} of ss(8) is not supported in a filter of onramp: {instead}");
    }
    if operator(word).is_some() {
        return format!("{word:?} stands between two conditions");
    }
    if word == ")" {
        return "\")\" needs a condition before it".into();
    }
    format!(
        "{word:?} is not understood in a filter{}: write src or dst with a prefix, sport or dport with = :PORT, joined by \"and\", \"or\", \"not\" and parentheses",
        did_you_mean(word, ["src", "dst", "sport", "dport", "and", "or", "not"])
    )
}
