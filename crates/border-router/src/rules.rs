//! The packet filter's rules that send a mesh's packets into a packet queue.
//!
//! Two rules: one for packets that enter by the mesh's interface (`prerouting`), one for packets
//! that leave by it (`postrouting`). So packets to and from servers on the border router itself are
//! queued, too. A packet that a queue accepts skips the rest of its chain, so these rules stand
//! last: no rule of others is skipped. Both carry the flag `bypass`: while no program holds the
//! queue, packets pass.
//!
//! The rules are installed in the first of two ways that works on this machine:
//! - `nft`: a table of our own, with two chains just behind those of priority `mangle`. Needs the
//!   kernel's `nft_queue`.
//! - `ip6tables`, in either of its variants: appended to the table `mangle`. A comment in the rule
//!   marks it as ours.
//!
//! Left out: every other rule. No rule of others is changed, moved or removed.
//!
//! Sources: nft(8), ip6tables(8), iptables-extensions(8).

use std::{
    fmt,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    process::{Command, Output, Stdio},
};

/// The packets that go into each queue, as rules of the packet filter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rules {
    pub(crate) interface: String,
    pub(crate) queue: u16,
}

/// The default number of the packet queue for `interface`: a hash of the name, so one interface
/// always has the same number, and two interfaces rarely share one. It is higher than the numbers
/// that people usually choose.
pub fn queue_of(interface: &str) -> u16 {
    // FNV-1a.
    let hash = interface.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let folded = (hash >> 16 ^ hash) as u16;
    folded | 0x8000
}

/// A program that changes rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tool {
    /// nft(8).
    Nft,
    /// One of the programs of ip6tables(8), by its name.
    Ip6tables(&'static str),
}

impl Rules {
    /// Rules for the IPv6 of `interface`; `None` where its name is not of letters,
    /// digits and `_ . : @ -`, which both tools take as they are.
    pub fn new(interface: &str, queue: u16) -> Option<Self> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:@-".contains(&byte);
        let is_name = !interface.is_empty() && !interface.starts_with('-');
        (is_name && interface.bytes().all(is_plain)).then(|| Self {
            interface: interface.to_owned(),
            queue,
        })
    }

    /// The first tool with which the kernel would take the rules; changes nothing.
    ///
    /// # Errors
    /// See [`RulesError`].
    pub fn probe(&self) -> Result<Tool, RulesError> {
        let mut refusals = Vec::new();
        for tool in TOOLS {
            let tried = match tool {
                Tool::Nft => run("nft", &["--check", "--file", "-"], &self.nft_table()),
                Tool::Ip6tables(name) => {
                    let restore = format!("{name}-restore");
                    run(&restore, &["--test", "--noflush"], &self.restore_lines())
                }
            };
            match tried {
                Ok(_) => return Ok(*tool),
                Err(refusal) => refusals.push(refusal),
            }
        }
        Err(RulesError::of(refusals))
    }

    /// Puts the rules in, with the first tool with which the kernel takes them. Rules that a
    /// killed process has left for the same interface and queue are taken over.
    ///
    /// # Errors
    /// See [`RulesError`]. No rule is left in then.
    pub fn install(&self) -> Result<Installed, RulesError> {
        let mut refusals = Vec::new();
        for tool in TOOLS {
            match self.install_with(*tool) {
                Ok(()) => {
                    return Ok(Installed {
                        rules: self.clone(),
                        tool: *tool,
                        is_in: true,
                    });
                }
                Err(refusal) => {
                    let _ = self.remove_with(*tool);
                    refusals.push(refusal);
                }
            }
        }
        Err(RulesError::of(refusals))
    }

    /// The commands that put the rules in, and those that take them out, for a shell.
    pub fn commands(&self, tool: Tool) -> (Vec<String>, Vec<String>) {
        match tool {
            Tool::Nft => (
                vec![format!("nft -f - <<'END'\n{}END", self.nft_table())],
                vec![format!("nft delete table ip6 {}", self.table())],
            ),
            Tool::Ip6tables(name) => {
                let line = |action: &str, chain| {
                    let words = self.ip6tables_rule(chain).join(" ");
                    format!("{name} -t mangle {action} {chain} {words}")
                };
                (
                    CHAINS.map(|(chain, _)| line("-A", chain)).into(),
                    CHAINS.map(|(chain, _)| line("-D", chain)).into(),
                )
            }
        }
    }

    fn install_with(&self, tool: Tool) -> Result<(), Refusal> {
        match tool {
            Tool::Nft => run("nft", &["--file", "-"], &self.nft_table()).map(drop),
            Tool::Ip6tables(name) => {
                self.remove_with(tool)?;
                for (chain, _) in CHAINS {
                    self.ip6tables(name, "-A", chain)?;
                }
                Ok(())
            }
        }
    }

    fn quieten_with(&self, tool: Tool) -> Result<(), Refusal> {
        match tool {
            Tool::Nft => {
                let table = self.table();
                let lines = format!("add table ip6 {table}\nflush table ip6 {table}\n");
                run("nft", &["--file", "-"], &lines).map(drop)
            }
            // The chains are not ours, and stay.
            Tool::Ip6tables(_) => self.remove_with(tool),
        }
    }

    fn remove_with(&self, tool: Tool) -> Result<(), Refusal> {
        match tool {
            Tool::Nft => {
                // nft fails to delete a table that does not exist, so the table is added first.
                let table = self.table();
                let lines = format!("add table ip6 {table}\ndelete table ip6 {table}\n");
                run("nft", &["--file", "-"], &lines).map(drop)
            }
            Tool::Ip6tables(name) => {
                for (chain, _) in CHAINS {
                    let ours = self.positions(name, chain)?.len();
                    for _ in 0..ours {
                        // Another process may have been faster.
                        let removed = self.ip6tables(name, "-D", chain);
                        if removed.is_err() && !self.positions(name, chain)?.is_empty() {
                            return removed;
                        }
                    }
                }
                Ok(())
            }
        }
    }

    /// Whether both rules are in, once each, and no rule of others stands behind them in their
    /// chains.
    fn stand(&self, tool: Tool) -> Result<bool, Refusal> {
        match tool {
            Tool::Nft => {
                let tables = run("nft", &["list", "tables", "ip6"], "")?;
                let name = format!("table ip6 {}", self.table());
                if !tables.lines().any(|line| line.trim() == name) {
                    return Ok(false);
                }
                let table = run("nft", &["list", "table", "ip6", &self.table()], "")?;
                let rules = table.lines().filter(|line| line.contains(" queue "));
                Ok(rules.count() == CHAINS.len())
            }
            Tool::Ip6tables(name) => {
                for (chain, _) in CHAINS {
                    if self.positions(name, chain)? != [0] {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    /// Where in a chain rules of ours stand: see [`Self::found`].
    fn positions(&self, name: &str, chain: &str) -> Result<Vec<usize>, Refusal> {
        let rules = run(name, &["-w", LOCK_WAIT_S, "-t", "mangle", "-S", chain], "")?;
        Ok(self.found(&rules))
    }

    /// Finds this router's own rules in the output of `ip6tables -S`. Returns for each of them,
    /// from the last to the first, how many foreign rules follow it. The rules of a Motet router on
    /// another interface are not counted as foreign: otherwise two routers would move their rules
    /// behind each other's for ever.
    fn found(&self, list: &str) -> Vec<usize> {
        let number = self.queue.to_string();
        let mut ours = Vec::new();
        let mut others = 0;
        let rules = list.lines().filter(|line| line.starts_with("-A "));
        for line in rules.rev() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let has = |one: &str, other: &str| words.windows(2).any(|pair| pair == [one, other]);
            let interface = has("-i", &self.interface) || has("-o", &self.interface);
            if !has("--comment", MARK) {
                others += 1;
            } else if interface && has("--queue-num", &number) {
                ours.push(others);
            }
        }
        ours
    }

    fn ip6tables(&self, name: &str, action: &str, chain: &str) -> Result<(), Refusal> {
        let rule = self.ip6tables_rule(chain);
        let mut words = vec!["-w", LOCK_WAIT_S, "-t", "mangle", action, chain];
        words.extend(rule.iter().map(String::as_str));
        run(name, &words, "").map(drop)
    }

    /// A rule behind the name of its chain.
    fn ip6tables_rule(&self, chain: &str) -> Vec<String> {
        let (_, side) = CHAINS
            .into_iter()
            .find(|(name, _)| *name == chain)
            .unwrap_or(CHAINS[0]);
        let number = self.queue.to_string();
        let mark = ["-m", "comment", "--comment", MARK];
        let target = ["-j", "NFQUEUE", "--queue-num", &number, "--queue-bypass"];
        [side, &self.interface]
            .into_iter()
            .chain(mark)
            .chain(target)
            .map(str::to_owned)
            .collect()
    }

    /// Both rules as `ip6tables-restore` reads them.
    fn restore_lines(&self) -> String {
        let rules = CHAINS.map(|(chain, _)| {
            let words = self.ip6tables_rule(chain).join(" ");
            format!("-A {chain} {words}\n")
        });
        format!("*mangle\n{}COMMIT\n", rules.concat())
    }

    fn table(&self) -> String {
        format!("motet_router_{}", self.queue)
    }

    /// The table as nft(8) reads it, in place of one that was left behind.
    fn nft_table(&self) -> String {
        let table = self.table();
        let chain = |(name, hook, side): (&str, &str, &str)| {
            format!(
                "  chain {name} {{\n    type filter hook {hook} priority mangle + 1; policy accept;\n    \
                 {side} \"{}\" queue num {} bypass\n  }}\n",
                self.interface, self.queue
            )
        };
        let chains = [
            ("from_mesh", "prerouting", "iifname"),
            ("to_mesh", "postrouting", "oifname"),
        ];
        format!(
            "add table ip6 {table}\ndelete table ip6 {table}\ntable ip6 {table} {{\n{}}}\n",
            chains.map(chain).concat()
        )
    }
}

/// Rules that are in; dropping the value takes them out.
#[derive(Debug)]
pub struct Installed {
    rules: Rules,
    tool: Tool,
    is_in: bool,
}

impl Installed {
    /// With what the rules were put in.
    pub fn tool(&self) -> Tool {
        self.tool
    }

    /// Puts the rules in again where another process has removed them, or has added rules behind
    /// them. Returns whether that was so.
    ///
    /// # Errors
    /// See [`RulesError`].
    pub fn restore(&self) -> Result<bool, RulesError> {
        let restored = match self.rules.stand(self.tool) {
            Ok(true) => return Ok(false),
            Ok(false) => self.rules.install_with(self.tool),
            Err(refusal) => Err(refusal),
        };
        restored.map_err(|refusal| RulesError::of(vec![refusal]))?;
        Ok(true)
    }

    /// Sends no further packet into the queue. Then read the queue until it is empty, before
    /// [`Self::remove`]: with a chain the kernel drops every packet that any queue holds.
    ///
    /// # Errors
    /// See [`RulesError`].
    pub fn quieten(&self) -> Result<(), RulesError> {
        let quiet = self.rules.quieten_with(self.tool);
        quiet.map_err(|refusal| RulesError::of(vec![refusal]))
    }

    /// Takes the rules out.
    ///
    /// # Errors
    /// See [`RulesError`].
    pub fn remove(mut self) -> Result<(), RulesError> {
        self.is_in = false;
        let removed = self.rules.remove_with(self.tool);
        removed.map_err(|refusal| RulesError::of(vec![refusal]))
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        if self.is_in {
            // A drop can report no error.
            let _ = self.rules.remove_with(self.tool);
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nft => "nft",
            Self::Ip6tables(name) => name,
        })
    }
}

/// Why a tool did not do its work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    NotInstalled,
    /// The tool failed and printed this, on one line.
    Said {
        tool: String,
        sentence: String,
    },
}

/// Why there are no rules. `Display` is one sentence for the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RulesError {
    /// The error of each tool; empty where none is installed.
    sentences: Vec<String>,
}

impl RulesError {
    pub(crate) fn of(refusals: Vec<Refusal>) -> Self {
        let said = refusals.into_iter().filter_map(|refusal| match refusal {
            Refusal::Said { tool, sentence } => Some(format!("{tool}: {sentence}")),
            Refusal::NotInstalled => None,
        });
        Self {
            sentences: said.collect(),
        }
    }
}

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sentences.is_empty() {
            return f
                .write_str("neither nft nor ip6tables is installed: install nftables or iptables");
        }
        let said = self.sentences.join("; ");
        write!(f, "the packet filter does not take the rules ({said})")
    }
}

impl std::error::Error for RulesError {}

/// Runs a tool to its end; returns what it prints.
pub(crate) fn run(program: &str, arguments: &[&str], input: &str) -> Result<String, Refusal> {
    let said = |sentence: String| Refusal::Said {
        tool: program.to_owned(),
        sentence,
    };
    let output = match start(program, arguments, input) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Refusal::NotInstalled);
        }
        started => started.map_err(|error| said(error.to_string()))?,
    };
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let line = stderr.lines().map(str::trim).find(|line| !line.is_empty());
        return Err(said(line.unwrap_or("failed without a word").to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn start(program: &str, arguments: &[&str], input: &str) -> io::Result<Output> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The terminal's Ctrl-C is for this process, not for a tool half way through.
        .process_group(0)
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A tool that has read enough closes its end.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output()
}

/// The tools, in the order in which they are tried. Plain `ip6tables` is the variant that this
/// machine is configured for, whose rules an administrator lists. Where it does not work, the named
/// variants are tried.
pub(crate) const TOOLS: &[Tool] = &[
    Tool::Nft,
    Tool::Ip6tables("ip6tables"),
    Tool::Ip6tables("ip6tables-nft"),
    Tool::Ip6tables("ip6tables-legacy"),
];

/// The chains of the table `mangle`, with the option that names the interface.
const CHAINS: [(&str, &str); 2] = [("PREROUTING", "-i"), ("POSTROUTING", "-o")];

/// The comment that marks a rule as ours.
pub(crate) const MARK: &str = "motet-router";

/// How long ip6tables waits for another process that changes rules, in seconds.
pub(crate) const LOCK_WAIT_S: &str = "5";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_tool_would_take_for_more_are_refused() {
        for name in ["wpan0", "veth-a.5", "a:b", "br_0@x"] {
            assert!(Rules::new(name, 1).is_some(), "{name}");
        }
        for name in ["", "-t", "wpan+", "a b", "a\"", "a;b", "a*", "ä", "a\n"] {
            assert!(Rules::new(name, 1).is_none(), "{name}");
        }
    }

    #[test]
    fn each_interface_has_a_queue_of_its_own() {
        let names = (0..10).flat_map(|n| ["wpan", "mesh", "tun"].map(|name| format!("{name}{n}")));
        let numbers: std::collections::BTreeSet<u16> = names.map(|name| queue_of(&name)).collect();
        assert_eq!(numbers.len(), 30);
        assert!(numbers.iter().all(|number| *number >= 0x8000));
        assert_eq!(queue_of("wpan0"), queue_of("wpan0"));
    }

    #[test]
    fn a_rule_of_ours_is_known_by_interface_queue_and_mark() {
        let rules = Rules::new("wpan0", 5).unwrap();
        let ours = "-A PREROUTING -i wpan0 -p tcp -m comment --comment motet-router -j NFQUEUE --queue-num 5 --queue-bypass";
        let others = [
            "-P PREROUTING ACCEPT",
            "-A PREROUTING -i wpan0 -p tcp -j NFQUEUE --queue-num 5 --queue-bypass",
            "-A PREROUTING -i wpan1 -p tcp -m comment --comment motet-router -j NFQUEUE --queue-num 5",
            "-A PREROUTING -i wpan0 -p tcp -m comment --comment motet-router -j NFQUEUE --queue-num 55",
            "-A PREROUTING -i wpan0 -m comment --comment motet-routers -j NFQUEUE --queue-num 5",
        ];
        assert_eq!(rules.found(&others.join("\n")), [0_usize; 0]);
        let last = format!("{}\n{ours}\n", others.join("\n"));
        assert_eq!(rules.found(&last), [0]);
        let twice = format!("{ours}\n{}\n{ours}\n", others[1]);
        assert_eq!(rules.found(&twice), [0, 1]);
        // A router's on another interface is nobody's that would be skipped.
        let beside = format!("{ours}\n{}\n", others[2]);
        assert_eq!(rules.found(&beside), [0]);
        assert_eq!(rules.found(&format!("{beside}{}\n", others[1])), [1]);
        // The list quotes what it was given.
        let line = rules.ip6tables_rule("POSTROUTING").join(" ");
        assert_eq!(rules.found(&format!("-A POSTROUTING {line}")), [0]);
    }

    #[test]
    fn what_is_printed_is_what_is_installed() {
        let rules = Rules::new("wpan0", 5).unwrap();
        let (install, remove) = rules.commands(Tool::Ip6tables("ip6tables"));
        assert_eq!(
            install,
            [
                "ip6tables -t mangle -A PREROUTING -i wpan0 -m comment --comment motet-router -j NFQUEUE --queue-num 5 --queue-bypass",
                "ip6tables -t mangle -A POSTROUTING -o wpan0 -m comment --comment motet-router -j NFQUEUE --queue-num 5 --queue-bypass",
            ]
        );
        let undone: Vec<String> = install
            .iter()
            .map(|line| line.replace("-A", "-D"))
            .collect();
        assert_eq!(remove, undone);
        let (install, remove) = rules.commands(Tool::Nft);
        // As nft(8) writes it: the table that was left behind goes, in the same transaction.
        let table = "\
add table ip6 motet_router_5
delete table ip6 motet_router_5
table ip6 motet_router_5 {
  chain from_mesh {
    type filter hook prerouting priority mangle + 1; policy accept;
    iifname \"wpan0\" queue num 5 bypass
  }
  chain to_mesh {
    type filter hook postrouting priority mangle + 1; policy accept;
    oifname \"wpan0\" queue num 5 bypass
  }
}
";
        assert_eq!(rules.nft_table(), table);
        assert_eq!(install, [format!("nft -f - <<'END'\n{table}END")]);
        assert_eq!(remove, ["nft delete table ip6 motet_router_5"]);
    }

    /// The first that the kernel takes is used; where none is, each one's refusal is told.
    #[test]
    fn nft_is_tried_first_and_ip6tables_behind_it() {
        assert_eq!(TOOLS[0], Tool::Nft);
        let rest = TOOLS[1..].iter();
        assert!(rest.clone().all(|tool| matches!(tool, Tool::Ip6tables(_))));
        assert_eq!(TOOLS.len(), 4);
        let said = |tool: &str| Refusal::Said {
            tool: tool.to_owned(),
            sentence: "no".to_owned(),
        };
        let error = RulesError::of(vec![said("nft"), Refusal::NotInstalled, said("ip6tables")]);
        let text = "the packet filter does not take the rules (nft: no; ip6tables: no)";
        assert_eq!(error.to_string(), text);
        let none = RulesError::of(vec![Refusal::NotInstalled; TOOLS.len()]);
        assert!(none.to_string().contains("install nftables or iptables"));
    }
}
