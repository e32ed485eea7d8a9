//! The packet filter's rules against forged sources. A packet of any protocol that comes from
//! outside the mesh, is forwarded into it and has a source inside it is dropped and counted (RFC
//! 2827, BCP 38).
//!
//! Place in the data flow: in the hook `forward`, in front of the queue of [`crate::rules`]. In
//! that hook every kernel version knows the input and the output interface; in `postrouting` the
//! input interface is known only since Linux 5.7. A flood of forged packets is dropped before the
//! queue, and causes no reports to this program.
//!
//! The rules are installed in one of two ways, as in [`crate::rules`]: a table of our own by
//! nft(8), which needs no `nft_queue`, or two chains of our own in the table `mangle` of
//! ip6tables(8), and a rule that jumps to them, which a comment marks as ours.
//!
//! Left out: packets for this machine itself. Where a mesh has a second border router, a mote's
//! packet to a service on this machine may arrive by way of the second one, from outside.
//!
//! Sources: nft(8), ip6tables(8), iptables-extensions(8).

use std::mem;

use crate::{
    inside::Inside,
    rules::{LOCK_WAIT_S, MARK, Refusal, Rules, RulesError, TOOLS, Tool, run},
};

/// Rules against forged sources that are in; dropping the value takes them out.
#[derive(Debug)]
pub struct Filter {
    names: Names,
    tool: Tool,
    /// The prefixes that the rules were made of.
    inside: Inside,
    /// The packet filter's count of dropped packets, and how much of it is in `dropped` already.
    seen: u64,
    dropped: u64,
    is_in: bool,
}

impl Filter {
    /// Installs the rules, beside `rules`, with the first tool that works on this kernel. Rules
    /// that a killed process has left for the same queue are replaced.
    ///
    /// # Errors
    /// See [`RulesError`]. No rule stays installed then.
    pub fn install(rules: &Rules, inside: Inside) -> Result<Self, RulesError> {
        let names = Names::of(rules);
        let mut refusals = Vec::new();
        for tool in TOOLS {
            match names.install(*tool, &inside) {
                Ok(()) => {
                    return Ok(Self {
                        names,
                        tool: *tool,
                        inside,
                        seen: 0,
                        dropped: 0,
                        is_in: true,
                    });
                }
                Err(refusal) => {
                    let _ = names.remove(*tool);
                    refusals.push(refusal);
                }
            }
        }
        Err(RulesError::of(refusals))
    }

    /// The commands that put the rules in, as the routes are now, and those that take them out, for
    /// a shell.
    ///
    /// # Errors
    /// See [`RulesError`]: no tool's rules would be taken. Nothing is changed.
    pub fn commands(
        rules: &Rules,
        inside: &Inside,
    ) -> Result<(Vec<String>, Vec<String>), RulesError> {
        let names = Names::of(rules);
        let mut refusals = Vec::new();
        for tool in TOOLS {
            match names.probe(*tool, inside) {
                Ok(()) => return Ok(names.commands(*tool, inside)),
                Err(refusal) => refusals.push(refusal),
            }
        }
        Err(RulesError::of(refusals))
    }

    /// With what the rules were put in.
    pub fn tool(&self) -> Tool {
        self.tool
    }

    /// Checks the rules: adds up the packets that they have dropped, adapts the rules if `inside`
    /// has changed, and installs them again if another process has removed some. Returns whether
    /// rules were missing.
    ///
    /// # Errors
    /// See [`RulesError`].
    pub fn keep(&mut self, inside: Inside) -> Result<bool, RulesError> {
        let kept = self.look().and_then(|stands| {
            if !stands {
                self.names.install(self.tool, &inside)?;
                self.seen = 0;
            } else if self.inside != inside {
                self.names.follow(self.tool, &inside)?;
            }
            self.inside = inside;
            Ok(!stands)
        });
        kept.map_err(|refusal| RulesError::of(vec![refusal]))
    }

    /// Packets that the rules have dropped, up to the last [`Self::keep`].
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes the rules out.
    ///
    /// # Errors
    /// See [`RulesError`].
    pub fn remove(mut self) -> Result<(), RulesError> {
        self.is_in = false;
        let removed = self.names.remove(self.tool);
        removed.map_err(|refusal| RulesError::of(vec![refusal]))
    }

    /// Counts, and returns whether all rules are in.
    fn look(&mut self) -> Result<bool, Refusal> {
        let found = self.names.found(self.tool)?;
        if let Some(count) = found.dropped {
            let seen = mem::replace(&mut self.seen, count);
            // A counter that somebody has reset begins anew.
            self.dropped += count.checked_sub(seen).unwrap_or(count);
        }
        let cuts = self.inside.cuts().len();
        Ok(found.dropped.is_some() && found.jumps == 1 && found.cuts == cuts)
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        if self.is_in {
            // A drop can report no error.
            let _ = self.names.remove(self.tool);
        }
    }
}

/// Which interface, and how everything of ours is called.
#[derive(Debug)]
struct Names {
    interface: String,
    /// The name of nft's table.
    table: String,
    /// The chain of ip6tables that looks at sources, and the one that drops and counts.
    inside: String,
    forged: String,
}

/// The rules that are in place, of all that should be.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Found {
    /// Rules that lead to ours.
    jumps: usize,
    /// Rules that look at a source.
    cuts: usize,
    /// Packets dropped; `None` where the counter is gone.
    dropped: Option<u64>,
}

impl Names {
    fn of(rules: &Rules) -> Self {
        let queue = rules.queue;
        Self {
            interface: rules.interface.clone(),
            table: format!("motet_inside_{queue}"),
            inside: format!("motet-inside-{queue}"),
            forged: format!("motet-forged-{queue}"),
        }
    }

    fn probe(&self, tool: Tool, inside: &Inside) -> Result<(), Refusal> {
        match tool {
            Tool::Nft => {
                let lines = self.nft_table(inside);
                run("nft", &["--check", "--file", "-"], &lines).map(drop)
            }
            Tool::Ip6tables(name) => {
                let lines = self.restore_lines(&[&self.forged, &self.inside], inside);
                let restore = format!("{name}-restore");
                run(&restore, &["--test", "--noflush"], &lines).map(drop)
            }
        }
    }

    fn install(&self, tool: Tool, inside: &Inside) -> Result<(), Refusal> {
        match tool {
            Tool::Nft => run("nft", &["--file", "-"], &self.nft_table(inside)).map(drop),
            Tool::Ip6tables(name) => {
                self.remove_jumps(name)?;
                let lines = self.restore_lines(&[&self.forged, &self.inside], inside);
                self.restore(name, &lines)?;
                // In front: a rule of others' that accepts would skip it.
                self.jump(name, &["-I", "FORWARD", "1"])
            }
        }
    }

    /// Replaces the sources in the rules; the counters of dropped packets stay.
    fn follow(&self, tool: Tool, inside: &Inside) -> Result<(), Refusal> {
        match tool {
            Tool::Nft => {
                let table = &self.table;
                let lines = format!(
                    "flush chain ip6 {table} inside\ntable ip6 {table} {{\n{}}}\n",
                    nft_chain(inside)
                );
                run("nft", &["--file", "-"], &lines).map(drop)
            }
            Tool::Ip6tables(name) => {
                self.restore(name, &self.restore_lines(&[&self.inside], inside))
            }
        }
    }

    fn remove(&self, tool: Tool) -> Result<(), Refusal> {
        match tool {
            Tool::Nft => {
                // nft fails to delete a table that does not exist, so the table is added first.
                let table = &self.table;
                let lines = format!("add table ip6 {table}\ndelete table ip6 {table}\n");
                run("nft", &["--file", "-"], &lines).map(drop)
            }
            Tool::Ip6tables(name) => {
                self.remove_jumps(name)?;
                // Here, too: a chain that is named so is there, and empty.
                let chains = [&self.inside, &self.forged];
                let made = chains.map(|chain| format!(":{chain} - [0:0]\n")).concat();
                let gone = chains.map(|chain| format!("-X {chain}\n")).concat();
                self.restore(name, &format!("*mangle\n{made}{gone}COMMIT\n"))
            }
        }
    }

    fn found(&self, tool: Tool) -> Result<Found, Refusal> {
        Ok(match tool {
            Tool::Nft => {
                let tables = run("nft", &["list", "tables", "ip6"], "")?;
                let ours = format!("table ip6 {}", self.table);
                if !tables.lines().any(|line| line.trim() == ours) {
                    return Ok(Found::default());
                }
                found_by_nft(&run("nft", &["list", "table", "ip6", &self.table], "")?)
            }
            Tool::Ip6tables(name) => {
                let save = format!("{name}-save");
                self.found_by_save(&run(&save, &["-c", "-t", "mangle"], "")?)
            }
        })
    }

    /// Finds our rules in the output of `ip6tables-save -c`: each rule stands behind its packets
    /// and bytes.
    fn found_by_save(&self, list: &str) -> Found {
        let mut found = Found::default();
        for line in list.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [counters, "-A", chain, rule @ ..] = words.as_slice() else {
                continue;
            };
            if *chain == self.inside {
                found.cuts += 1;
            } else if *chain == self.forged {
                let packets = counters.trim_start_matches('[').split(':').next();
                found.dropped = packets.and_then(|packets| packets.parse().ok());
            } else if *chain == "FORWARD" && rule.ends_with(&["-j", &self.inside]) {
                found.jumps += 1;
            }
        }
        found
    }

    fn restore(&self, name: &str, lines: &str) -> Result<(), Refusal> {
        let restore = format!("{name}-restore");
        run(&restore, &["-w", LOCK_WAIT_S, "--noflush"], lines).map(drop)
    }

    fn jump(&self, name: &str, action: &[&str]) -> Result<(), Refusal> {
        let rule = self.jump_rule();
        let mut words = vec!["-w", LOCK_WAIT_S, "-t", "mangle"];
        words.extend(action);
        words.extend(rule.iter().map(String::as_str));
        run(name, &words, "").map(drop)
    }

    fn remove_jumps(&self, name: &'static str) -> Result<(), Refusal> {
        let jumps = self.found(Tool::Ip6tables(name))?.jumps;
        for _ in 0..jumps {
            self.jump(name, &["-D", "FORWARD"])?;
        }
        Ok(())
    }

    fn jump_rule(&self) -> Vec<String> {
        let interface = &self.interface;
        let sides = ["!", "-i", interface, "-o", interface];
        let mark = ["-m", "comment", "--comment", MARK, "-j", &self.inside];
        sides.into_iter().chain(mark).map(str::to_owned).collect()
    }

    /// These chains anew, as `ip6tables-restore` reads them: other rules stay.
    fn restore_lines(&self, chains: &[&String], inside: &Inside) -> String {
        let mut lines = "*mangle\n".to_owned();
        for chain in chains {
            lines += &format!(":{chain} - [0:0]\n");
        }
        if chains.contains(&&self.forged) {
            lines += &format!("-A {} -j DROP\n", self.forged);
        }
        for (addr, len, is_inside) in inside.cuts() {
            let target = if is_inside { &self.forged } else { "RETURN" };
            lines += &format!("-A {} -s {addr}/{len} -j {target}\n", self.inside);
        }
        lines + "COMMIT\n"
    }

    /// The table as nft(8) reads it, in place of one that was left behind.
    fn nft_table(&self, inside: &Inside) -> String {
        let (table, interface) = (&self.table, &self.interface);
        format!(
            "add table ip6 {table}\ndelete table ip6 {table}\ntable ip6 {table} {{\n  counter forged {{\n  }}\n\
             {}  chain into_mesh {{\n    type filter hook forward priority mangle + 1; policy accept;\n    \
             iifname != \"{interface}\" oifname \"{interface}\" jump inside\n  }}\n}}\n",
            nft_chain(inside)
        )
    }

    fn commands(&self, tool: Tool, inside: &Inside) -> (Vec<String>, Vec<String>) {
        match tool {
            Tool::Nft => (
                vec![format!("nft -f - <<'END'\n{}END", self.nft_table(inside))],
                vec![format!("nft delete table ip6 {}", self.table)],
            ),
            Tool::Ip6tables(name) => {
                let rule = self.jump_rule().join(" ");
                let lines = self.restore_lines(&[&self.forged, &self.inside], inside);
                let gone = [&self.inside, &self.forged].map(|chain| {
                    format!("{name} -t mangle -F {chain}\n{name} -t mangle -X {chain}")
                });
                let mut remove = vec![format!("{name} -t mangle -D FORWARD {rule}")];
                remove.extend(gone);
                let install = vec![
                    format!("{name}-restore --noflush <<'END'\n{lines}END"),
                    format!("{name} -t mangle -I FORWARD 1 {rule}"),
                ];
                (install, remove)
            }
        }
    }
}

/// The chain that looks at sources.
fn nft_chain(inside: &Inside) -> String {
    let rules = inside.cuts().into_iter().map(|(addr, len, is_inside)| {
        let verdict = match is_inside {
            true => "counter name forged drop",
            false => "return",
        };
        format!("    ip6 saddr {addr}/{len} {verdict}\n")
    });
    format!("  chain inside {{\n{}  }}\n", rules.collect::<String>())
}

/// Finds our rules in the output of `nft list table`.
fn found_by_nft(list: &str) -> Found {
    let lines = list.lines().map(str::trim);
    let has = |word: &str| lines.clone().filter(|line| line.contains(word)).count();
    let mut counters = lines
        .clone()
        .filter_map(|line| line.strip_prefix("packets "));
    let packets = counters.next().and_then(|rest| rest.split(' ').next());
    Found {
        jumps: has("jump inside"),
        cuts: has("ip6 saddr "),
        dropped: packets.and_then(|packets| packets.parse().ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside() -> Inside {
        let line = |to: &str, len: &str, device: &str| {
            let zeros = "0".repeat(32);
            format!("{to} {len} {zeros} 00 {zeros} 00000100 00000001 00000000 00000001 {device}\n")
        };
        let (mesh, host) = (
            "fd120000000000010000000000000000",
            "fd120000000000010000000000000099",
        );
        Inside::parse(
            &[line(mesh, "40", "wpan0"), line(host, "80", "eth0")].concat(),
            "wpan0",
        )
    }

    fn names() -> Names {
        Names::of(&Rules::new("wpan0", 5).unwrap())
    }

    #[test]
    fn the_rules_are_those_of_the_routes() {
        let lines = "*mangle\n:motet-forged-5 - [0:0]\n:motet-inside-5 - [0:0]\n\
                     -A motet-forged-5 -j DROP\n\
                     -A motet-inside-5 -s fd12:0:0:1::99/128 -j RETURN\n\
                     -A motet-inside-5 -s fd12:0:0:1::/64 -j motet-forged-5\nCOMMIT\n";
        let (install, remove) = names().commands(Tool::Ip6tables("ip6tables"), &inside());
        let jump = "! -i wpan0 -o wpan0 -m comment --comment motet-router -j motet-inside-5";
        assert_eq!(
            install,
            [
                format!("ip6tables-restore --noflush <<'END'\n{lines}END"),
                format!("ip6tables -t mangle -I FORWARD 1 {jump}"),
            ]
        );
        assert_eq!(remove[0], format!("ip6tables -t mangle -D FORWARD {jump}"));
        let table = "\
add table ip6 motet_inside_5
delete table ip6 motet_inside_5
table ip6 motet_inside_5 {
  counter forged {
  }
  chain inside {
    ip6 saddr fd12:0:0:1::99/128 return
    ip6 saddr fd12:0:0:1::/64 counter name forged drop
  }
  chain into_mesh {
    type filter hook forward priority mangle + 1; policy accept;
    iifname != \"wpan0\" oifname \"wpan0\" jump inside
  }
}
";
        assert_eq!(names().nft_table(&inside()), table);
    }

    #[test]
    fn what_is_listed_is_found_and_counted() {
        let all = "\
:motet-forged-5 - [0:0]
[7:560] -A FORWARD ! -i wpan0 -o wpan0 -m comment --comment motet-router -j motet-inside-5
[0:0] -A FORWARD ! -i wpan1 -o wpan1 -m comment --comment motet-router -j motet-inside-6
[4:320] -A motet-forged-5 -j DROP
[9:720] -A motet-forged-6 -j DROP
[0:0] -A motet-inside-5 -s fd12:0:0:1::99/128 -j RETURN
[4:320] -A motet-inside-5 -s fd12:0:0:1::/64 -j motet-forged-5
";
        let whole = Found {
            jumps: 1,
            cuts: 2,
            dropped: Some(4),
        };
        assert_eq!(names().found_by_save(all), whole);
        assert_eq!(names().found_by_save(""), Found::default());
        // As nft 1.0.6 lists it.
        let table = "\
table ip6 motet_inside_5 {
\tcounter forged {
\t\tpackets 4 bytes 320
\t}

\tchain inside {
\t\tip6 saddr fd12:0:0:1::99 return
\t\tip6 saddr fd12:0:0:1::/64 counter name \"forged\" drop
\t}

\tchain into_mesh {
\t\ttype filter hook forward priority mangle + 1; policy accept;
\t\tiifname != \"wpan0\" oifname \"wpan0\" jump inside
\t}
}
";
        assert_eq!(found_by_nft(table), whole);
    }
}
