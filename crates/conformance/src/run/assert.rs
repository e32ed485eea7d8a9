//! Assertions about `TCP_INFO`: `assert tcpi_state == TCPI_LISTEN`.
//!
//! Scripts write assertions in Python. This file understands comparisons, also in chains, `+`,
//! `-`, `*`, `&`, `|`, `and`, `or`, `not`, parentheses, numbers and names, each as tightly bound
//! as in Python. The value of each name is the field of `TCP_INFO` of the socket under test.

use super::{Player, Stop, failed, refused};
use crate::host::TcpInfo;
use crate::script::Position;

impl Player<'_> {
    /// Checks what stands between `%{` and `}%`.
    pub(super) fn code(&mut self, at: Position, code: &str) -> Result<(), Stop> {
        let info = self
            .flows
            .under_test()
            .and_then(|fd| self.host.tcp_info(fd).ok());
        let Some(info) = info else {
            return failed(at, "no socket to ask about".to_owned());
        };
        match holds(code, &info) {
            Ok(()) => Ok(()),
            Err(Doubt::Wrong(message)) => failed(at, message),
            Err(Doubt::Unknown(message)) => refused(at, message),
        }
    }
}

/// Why code does not hold.
pub enum Doubt {
    /// The assertion does not hold; the reason.
    Wrong(String),
    /// The code is not understood.
    Unknown(String),
}

/// Whether the code between `%{` and `}%` holds of a connection.
///
/// # Errors
/// The reason, when the assertion is wrong or not understood.
pub fn holds(code: &str, info: &TcpInfo) -> Result<(), Doubt> {
    for line in code.split(['\n', ';']).map(str::trim) {
        if line.is_empty() || line.starts_with('#') || line.starts_with("print") {
            continue;
        }
        let Some(condition) = line.strip_prefix("assert") else {
            return Err(Doubt::Unknown(format!("`{line}` is no assertion")));
        };
        let condition = without_message(condition);
        let mut parser = Parser {
            tokens: tokens(condition),
            at: 0,
            info,
        };
        match parser.disjunction() {
            Some(value) if parser.at == parser.tokens.len() => {
                if value == 0 {
                    let condition = condition.trim();
                    let values = parser.values();
                    return Err(Doubt::Wrong(format!(
                        "`{condition}` does not hold: {values}"
                    )));
                }
            }
            _ => {
                let unknown = parser.unknown().map_or_else(String::new, |name| {
                    format!(": `{name}` is nothing that this stack keeps")
                });
                let condition = condition.trim();
                return Err(Doubt::Unknown(format!(
                    "`{condition}` is not understood{unknown}"
                )));
            }
        }
    }
    Ok(())
}

/// The condition, without the message behind its comma.
fn without_message(text: &str) -> &str {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => return text.get(..at).unwrap_or(text),
            _ => {}
        }
    }
    text
}

fn tokens(text: &str) -> Vec<String> {
    let mut list = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let len = if is_name(first) {
            rest.find(|c| !is_name(c)).unwrap_or(rest.len())
        } else if ["==", "!=", "<=", ">=", "<<"]
            .iter()
            .any(|op| rest.starts_with(op))
        {
            2
        } else {
            first.len_utf8()
        };
        let (token, behind) = rest.split_at_checked(len).unwrap_or((rest, ""));
        list.push(token.to_owned());
        rest = behind.trim_start();
    }
    list
}

struct Parser<'a> {
    tokens: Vec<String>,
    at: usize,
    info: &'a TcpInfo,
}

impl Parser<'_> {
    fn take(&mut self, token: &str) -> bool {
        let takes = self.tokens.get(self.at).is_some_and(|next| next == token);
        self.at += usize::from(takes);
        takes
    }

    fn disjunction(&mut self) -> Option<i64> {
        let mut value = self.conjunction()?;
        while self.take("or") {
            let other = self.conjunction()?;
            value = i64::from(value != 0 || other != 0);
        }
        Some(value)
    }

    fn conjunction(&mut self) -> Option<i64> {
        let mut value = self.comparison()?;
        while self.take("and") {
            let other = self.comparison()?;
            value = i64::from(value != 0 && other != 0);
        }
        Some(value)
    }

    fn comparison(&mut self) -> Option<i64> {
        if self.take("not") {
            return Some(i64::from(self.comparison()? == 0));
        }
        let mut left = self.bits()?;
        let Some(mut operator) = self.operator() else {
            return Some(left);
        };
        // As in Python, `1 <= x <= 3` is `1 <= x and x <= 3`.
        let mut holds = true;
        loop {
            let right = self.bits()?;
            holds &= match operator {
                "==" => left == right,
                "!=" => left != right,
                "<=" => left <= right,
                ">=" => left >= right,
                "<" => left < right,
                _ => left > right,
            };
            left = right;
            match self.operator() {
                Some(next) => operator = next,
                None => return Some(i64::from(holds)),
            }
        }
    }

    fn operator(&mut self) -> Option<&'static str> {
        let all = ["==", "!=", "<=", ">=", "<", ">"];
        all.into_iter().find(|operator| self.take(operator))
    }

    fn bits(&mut self) -> Option<i64> {
        let mut value = self.common_bits()?;
        while self.take("|") {
            value |= self.common_bits()?;
        }
        Some(value)
    }

    fn common_bits(&mut self) -> Option<i64> {
        let mut value = self.sum()?;
        while self.take("&") {
            value &= self.sum()?;
        }
        Some(value)
    }

    fn sum(&mut self) -> Option<i64> {
        let mut value = self.product()?;
        loop {
            if self.take("+") {
                value = value.checked_add(self.product()?)?;
            } else if self.take("-") {
                value = value.checked_sub(self.product()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<i64> {
        let mut value = self.single()?;
        while self.take("*") {
            value = value.checked_mul(self.single()?)?;
        }
        Some(value)
    }

    fn single(&mut self) -> Option<i64> {
        if self.take("(") {
            let value = self.disjunction()?;
            return self.take(")").then_some(value);
        }
        let token = self.tokens.get(self.at)?.clone();
        self.at += 1;
        match token.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).ok(),
            None if token.starts_with(|c: char| c.is_ascii_digit()) => token.parse().ok(),
            None => value_of(&token, self.info),
        }
    }

    /// The first field or constant without a known value.
    fn unknown(&self) -> Option<&str> {
        let is_name = |token: &&String| token.starts_with("tcpi_") || token.starts_with("TCP");
        let mut names = self.tokens.iter().filter(is_name).map(String::as_str);
        names.find(|name| value_of(name, self.info).is_none())
    }

    /// The fields that the code names, with their values.
    fn values(&self) -> String {
        let fields = self
            .tokens
            .iter()
            .filter(|token| token.starts_with("tcpi_"));
        let list: Vec<String> = fields
            .map(|name| format!("{name} = {}", value_of(name, self.info).unwrap_or(-1)))
            .collect();
        list.join(", ")
    }
}

fn value_of(name: &str, info: &TcpInfo) -> Option<i64> {
    let state = name
        .strip_prefix("TCPI_")
        .or_else(|| name.strip_prefix("TCP_"))
        .or_else(|| name.strip_prefix("TCPS_"));
    if let Some(value) = info.get(name) {
        return i64::try_from(value).ok();
    }
    Some(match name {
        "TCPI_OPT_TIMESTAMPS" => i64::from(TcpInfo::TIMESTAMPS),
        "TCPI_OPT_SACK" => i64::from(TcpInfo::SACK),
        "TCPI_OPT_WSCALE" => i64::from(TcpInfo::WINDOW_SCALE),
        "TCPI_OPT_ECN" => i64::from(TcpInfo::ECN),
        "TCP_CA_Open" => 0,
        "TCP_CA_Disorder" => 1,
        "TCP_CA_CWR" => 2,
        "TCP_CA_Recovery" => 3,
        "TCP_CA_Loss" => 4,
        "TCP_INFINITE_SSTHRESH" => 0x7fff_ffff,
        _ => match state? {
            "ESTABLISHED" => 1,
            "SYN_SENT" => 2,
            "SYN_RECV" | "SYN_RECEIVED" => 3,
            "FIN_WAIT1" | "FIN_WAIT_1" => 4,
            "FIN_WAIT2" | "FIN_WAIT_2" => 5,
            "TIME_WAIT" => 6,
            "CLOSE" | "CLOSED" => 7,
            "CLOSE_WAIT" => 8,
            "LAST_ACK" => 9,
            "LISTEN" => 10,
            "CLOSING" => 11,
            _ => return None,
        },
    })
}
