//! A script: options, commands, and events at their times.

use super::cursor::Cursor;
use super::preprocess::preprocess;
use super::{Action, Event, Script, SyntaxError, Time, call, packet};

/// Reads a script.
///
/// # Errors
/// [`SyntaxError`]: where, and what was expected.
pub fn parse(text: &str) -> Result<Script, SyntaxError> {
    let text = preprocess(text)?;
    let mut cursor = Cursor::new(&text);
    let mut script = Script::default();
    while cursor.sees("--") {
        let at = cursor.position();
        cursor.take("--");
        let name = cursor
            .word()
            .ok_or_else(|| cursor.expected("an option's name"))?
            .to_owned();
        let value = match cursor.peek() {
            Some('=') => {
                cursor.next();
                Some(option_value(&mut cursor).to_owned())
            }
            _ => None,
        };
        script.options.push((at, name, value));
    }
    if cursor.sees("`") {
        let at = cursor.position();
        script.init = Some((at, command(&mut cursor)?));
    }
    while !cursor.is_at_end() {
        if cursor.sees("`") {
            let at = cursor.position();
            script.cleanup = Some((at, command(&mut cursor)?));
            if !cursor.is_at_end() {
                return Err(cursor.expected("the end of the script behind its last command"));
            }
            break;
        }
        if cursor.sees("--") {
            return Err(cursor.error("options belong before the first event"));
        }
        script.events.push(event(&mut cursor)?);
    }
    match script.events.is_empty() {
        true => Err(cursor.expected("at least one event")),
        false => Ok(script),
    }
}

fn option_value<'a>(cursor: &mut Cursor<'a>) -> &'a str {
    if cursor.peek() == Some('"') {
        cursor.next();
        let value = cursor.take_while(|c| c != '"' && c != '\n');
        cursor.take("\"");
        return value;
    }
    cursor.take_while(|c| !c.is_whitespace())
}

fn command(cursor: &mut Cursor<'_>) -> Result<String, SyntaxError> {
    cursor.expect("`")?;
    Ok(cursor.until("`")?.trim().to_owned())
}

fn event(cursor: &mut Cursor<'_>) -> Result<Event, SyntaxError> {
    cursor.skip_blanks();
    let (at, start) = (cursor.position(), cursor.offset());
    let time = event_time(cursor)?;
    let behind_time = *cursor;
    let until = match cursor.take("...") {
        true => Some(time_us(cursor)?),
        false => None,
    };
    let action = if until.is_some() {
        Action::Call(call::call(cursor, until)?)
    } else if cursor.take("<") {
        packet::inbound(cursor)?
    } else if cursor.take(">") {
        packet::outbound(cursor)?
    } else if cursor.sees("`") {
        Action::Command(command(cursor)?)
    } else if cursor.take("%{") {
        Action::Code(cursor.until("}%")?.trim().to_owned())
    } else {
        Action::Call(call::call(cursor, None)?)
    };
    check_time(&time, &action, &behind_time)?;
    let text: Vec<&str> = cursor.since(start).split_whitespace().collect();
    Ok(Event {
        at,
        time,
        action,
        text: text.join(" "),
    })
}

fn event_time(cursor: &mut Cursor<'_>) -> Result<Time, SyntaxError> {
    if cursor.take("*") {
        return Ok(Time::Any);
    }
    let relative = cursor.take("+");
    let before = *cursor;
    let from = time_us(cursor)?;
    if !cursor.take("~") {
        return Ok(match relative {
            true => Time::Relative(from),
            false => Time::Absolute(from),
        });
    }
    if relative {
        cursor.expect("+")?;
    }
    let to = time_us(cursor)?;
    if to < from {
        return Err(before.error("the time range is backwards"));
    }
    Ok(match relative {
        true => Time::RelativeRange(from, to),
        false => Time::AbsoluteRange(from, to),
    })
}

/// Only a segment that the stack sends can come at any time, or within a range.
fn check_time(time: &Time, action: &Action, at: &Cursor<'_>) -> Result<(), SyntaxError> {
    let loose = matches!(
        time,
        Time::Any | Time::AbsoluteRange(..) | Time::RelativeRange(..)
    );
    match loose && !matches!(action, Action::Expect(_)) {
        true => Err(at.expected("`>`: only a segment sent can come at any time or in a range")),
        false => Ok(()),
    }
}

/// Seconds, with up to six decimals, as microseconds.
fn time_us(cursor: &mut Cursor<'_>) -> Result<u64, SyntaxError> {
    cursor.skip_blanks();
    let before = *cursor;
    let whole = cursor.take_while(|c| c.is_ascii_digit());
    let has_point = cursor.peek() == Some('.') && !cursor.rest().starts_with("..");
    let fraction = if has_point {
        cursor.next();
        cursor.take_while(|c| c.is_ascii_digit())
    } else {
        ""
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(before.expected("a time in seconds"));
    }
    let seconds: u64 = match whole {
        "" => 0,
        whole => whole
            .parse()
            .map_err(|_| before.error("the time is too large"))?,
    };
    let us: u64 = format!("{fraction:0<6}")
        .get(..6)
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0);
    seconds
        .checked_mul(1_000_000)
        .and_then(|s| s.checked_add(us))
        .filter(|us| *us < 1 << 52)
        .ok_or_else(|| before.error("the time is too large"))
}
