//! A command line of the shell as the simple commands in it: enough of the language for the pages.

/// The simple commands of a line: those between pipes, semicolons and `&&`, and those in `$(…)`.
/// What stands in quotes is one word; `sudo` and assignments ahead of a command are left out.
pub(super) fn simple_commands(text: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    split(&mut text.chars().peekable(), None, &mut commands);
    for command in &mut commands {
        let ahead = |word: &String| {
            word == "sudo" || word.split_once('=').is_some_and(|(name, _)| is_name(name))
        };
        let ahead = command.iter().take_while(|word| ahead(word)).count();
        command.drain(..ahead);
    }
    commands.retain(|command| !command.is_empty());
    commands
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Reads up to `end`, or to the end of the text.
fn split(letters: &mut Letters<'_>, end: Option<char>, commands: &mut Vec<Vec<String>>) {
    let mut command: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    while let Some(letter) = letters.next() {
        if Some(letter) == end {
            break;
        }
        match letter {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                quoted(letters, letter, word, commands);
            }
            '\\' => {
                // A line that goes on.
                if let Some(escaped) = letters.next().filter(|&c| c != '\n') {
                    word.get_or_insert_default().push(escaped);
                }
            }
            '$' if letters.next_if_eq(&'(').is_some() => {
                split(letters, Some(')'), commands);
                word.get_or_insert_default().push_str("$()");
            }
            '#' if word.is_none() => while letters.next_if(|&c| c != '\n').is_some() {},
            '|' | ';' | '&' | '\n' => {
                command.extend(word.take());
                commands.push(std::mem::take(&mut command));
            }
            _ if letter.is_whitespace() => command.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    command.extend(word);
    commands.push(command);
}

fn quoted(
    letters: &mut Letters<'_>,
    quote: char,
    word: &mut String,
    commands: &mut Vec<Vec<String>>,
) {
    while let Some(letter) = letters.next() {
        match letter {
            _ if letter == quote => return,
            '$' if quote == '"' && letters.next_if_eq(&'(').is_some() => {
                split(letters, Some(')'), commands);
                word.push_str("$()");
            }
            '\\' if quote == '"' => word.extend(letters.next()),
            _ => word.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_substitutions_quotes_and_comments_are_told_apart() {
        assert_eq!(
            simple_commands(
                "sudo A=1 motet sniff --pcap - | tshark -r - -o \"$(motet keys wireshark k)\" # x"
            ),
            [
                vec!["motet", "sniff", "--pcap", "-"],
                vec!["motet", "keys", "wireshark", "k"],
                vec!["tshark", "-r", "-", "-o", "$()"],
            ]
        );
        assert_eq!(
            simple_commands("motet up -- sh -c 'echo a | nc b 7' && motet a \\\n b"),
            [
                vec!["motet", "up", "--", "sh", "-c", "echo a | nc b 7"],
                vec!["motet", "a", "b"],
            ]
        );
    }
}
