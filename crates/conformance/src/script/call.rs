//! Calls of the application: name, arguments, result, errno.

use super::cursor::Cursor;
use super::{Call, SyntaxError, Value};

/// `name(arguments) = result ERRNO (note)`
pub(super) fn call(cursor: &mut Cursor<'_>, until: Option<u64>) -> Result<Call, SyntaxError> {
    let Some(name) = cursor.word() else {
        return Err(cursor.expected("`<`, `>`, a command, `%{` or a call"));
    };
    let args = arguments(cursor)?;
    cursor.expect("=")?;
    let result = value(cursor)?;
    let errno = cursor.word().map(str::to_owned);
    // A note for the reader: (Operation now in progress), (flags O_RDWR).
    if cursor.take("(") {
        cursor.until(")")?;
    }
    Ok(Call {
        until,
        name: name.to_owned(),
        args,
        result,
        errno,
    })
}

fn arguments(cursor: &mut Cursor<'_>) -> Result<Vec<Value>, SyntaxError> {
    cursor.expect("(")?;
    list(cursor, ")")
}

/// Values up to `close`.
fn list(cursor: &mut Cursor<'_>, close: &str) -> Result<Vec<Value>, SyntaxError> {
    let mut values = Vec::new();
    if cursor.take(close) {
        return Ok(values);
    }
    loop {
        values.push(value(cursor)?);
        if cursor.take(close) {
            return Ok(values);
        }
        if !cursor.take(",") {
            return Err(cursor.expected(&format!("`,` or `{close}`")));
        }
    }
}

fn value(cursor: &mut Cursor<'_>) -> Result<Value, SyntaxError> {
    let first = single(cursor)?;
    if !cursor.sees("|") {
        return Ok(first);
    }
    let mut parts = vec![first];
    while cursor.take("|") {
        parts.push(single(cursor)?);
    }
    Ok(Value::Or(parts))
}

fn single(cursor: &mut Cursor<'_>) -> Result<Value, SyntaxError> {
    cursor.skip_blanks();
    let before = *cursor;
    if cursor.take("...") {
        return Ok(Value::Any);
    }
    if cursor.take("[") {
        return Ok(Value::List(list(cursor, "]")?));
    }
    if cursor.take("{") {
        return Ok(Value::Struct(list(cursor, "}")?));
    }
    if cursor.take("(") {
        let inner = value(cursor)?;
        cursor.expect(")")?;
        return Ok(inner);
    }
    if cursor.take("\"") {
        let mut text = cursor.until("\"")?.to_owned();
        while cursor.take("\"") {
            text.push_str(cursor.until("\"")?);
        }
        cursor.take("...");
        return Ok(Value::Text(text));
    }
    let negative = cursor.take("-");
    if negative || cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
        let value = cursor.number("a number", i64::MAX as u64)? as i64;
        return Ok(Value::Number(if negative { -value } else { value }));
    }
    let Some(word) = cursor.word() else {
        return Err(before.expected("a value"));
    };
    let word = word.to_owned();
    let applied = match cursor.peek() == Some('(') {
        true => Some(arguments(cursor)?),
        false => None,
    };
    if cursor.sees("=") && !cursor.sees("==") {
        cursor.take("=");
        return Ok(Value::Field(word, Box::new(value(cursor)?)));
    }
    Ok(match applied {
        Some(args) => Value::Apply(word, args),
        None => Value::Word(word),
    })
}
