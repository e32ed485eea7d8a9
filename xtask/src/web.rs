//! The live page: built to a folder of static files, served, measured, and judged beside the
//! command.
//!
//! `web/lab` becomes WebAssembly, `web/bind` binds it to JavaScript into `web/generated`, and Vite
//! makes `target/web` of it. npm's packages are those of `web/package-lock.json`, in
//! `web/node_modules`.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::step::{StepOutcome, essence, run_logged};
use crate::tools::{self, Tool};
use crate::workspace::{Workspace, in_ci, linted, locked};

/// Builds the page; then serves it, or prints how large and how fast its lab is.
pub(crate) fn run(workspace: &Workspace, serve: bool, sizes: bool) -> Result<bool> {
    tools::provide(workspace, BUILDERS)?;
    if let Some(lack) = lack(BUILDERS)? {
        bail!(lack);
    }
    let page = Page::build(workspace)?;
    println!("the page is in {}", page.folder.display());
    if sizes {
        page.print_figures()?;
    }
    if serve {
        let mut preview = page.node("node_modules/vite/bin/vite.js");
        return Ok(preview.arg("preview").status()?.success());
    }
    Ok(true)
}

/// Builds the page, compares its lab with the command, and lets a browser judge the rest.
pub(crate) fn check(workspace: &Workspace) -> Result<StepOutcome> {
    let needed: Vec<Tool> = BUILDERS.iter().copied().chain([tools::CHROMIUM]).collect();
    tools::provide(workspace, &needed)?;
    if let Some(lack) = lack(&needed)? {
        return Ok(match in_ci() {
            true => StepOutcome::single(false, "", lack),
            false => StepOutcome::single(true, format!("incomplete: {lack}"), ""),
        });
    }
    judge_licences(&workspace.root.join("web/package-lock.json"))?;
    let scratch = workspace.scratch()?;
    // The page first: it is the longest build, and waits for no other one.
    let page = Page::build(workspace)?;
    let results = page
        .script("tests/lab.mjs", &workspace.debug_motet()?)
        .arg(scratch.join("web-lab"))
        .logged("web-lab.log")?;
    let seen = page.look(&page.folder, None)?;
    let mut outcome = StepOutcome {
        passed: results.passed + seen.passed,
        failed: results.failed + seen.failed,
        flaky: [results.flaky, seen.flaky].concat(),
        note: String::new(),
        output: format!("{}{}", results.output, seen.output),
    };
    outcome.note = format!(
        "{} passed, {} failed{}",
        outcome.passed,
        outcome.failed,
        page.noted()
    );
    Ok(outcome)
}

/// The page as built.
pub(crate) struct Page<'w> {
    workspace: &'w Workspace,
    /// Its sources.
    web: PathBuf,
    /// What is served.
    folder: PathBuf,
}

/// What one run of the checks found: a part of the step's outcome.
struct Judged {
    passed: u32,
    failed: u32,
    /// Tests that failed once and then held.
    flaky: Vec<String>,
    output: String,
}

/// How large the lab is, and how long it takes for the same.
#[derive(Deserialize)]
struct Figures {
    raw: u64,
    gzip: u64,
    brotli: u64,
    /// The module that explains frames, loaded when somebody first asks.
    explainer_brotli: u64,
    browser_ms: f64,
    native_ms: f64,
}

impl<'w> Page<'w> {
    /// Builds it; what is needed for that has to be there.
    pub(crate) fn build(workspace: &'w Workspace) -> Result<Self> {
        let page = Self {
            workspace,
            web: workspace.root.join("web"),
            folder: workspace.target.join("web"),
        };
        let log = workspace.scratch()?.join("web-build.log");
        let begin = |what: &str| eprintln!("{what} (log: {})", log.display());
        begin("building the lab for WebAssembly");
        let mut lab = workspace.web_cargo("build");
        lab.args(LAB).args(locked());
        must(linted(&mut lab), &log)?;
        begin("building what explains frames for WebAssembly");
        let mut explainer = workspace.web_cargo("build");
        explainer.args(EXPLAINER).args(locked());
        must(linted(&mut explainer), &log)?;
        let built = workspace.target.join("wasm32-unknown-unknown/release");
        begin("binding it to JavaScript");
        let mut bind = workspace.web_cargo("run");
        linted(&mut bind)
            .args(["--quiet", "--package", "motet-bind"])
            .args(locked())
            .arg("--")
            .arg(built.join("motet_web.wasm"))
            .arg(built.join("motet_web_explain.wasm"))
            .arg(page.web.join("generated"));
        must(&mut bind, &log)?;
        begin("installing npm's packages");
        page.install_packages(&log)?;
        begin("checking types, and building the page");
        must(
            page.node("node_modules/typescript/bin/tsc").arg("--noEmit"),
            &log,
        )?;
        must(
            page.node("node_modules/vite/bin/vite.js").arg("build"),
            &log,
        )?;
        Ok(page)
    }

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// How many of the tests that are called so passed and failed with the page in `folder`.
    pub(crate) fn opens(&self, folder: &Path, tests: &str) -> Result<(u32, u32)> {
        let judged = self.look(folder, Some(tests))?;
        if judged.failed > 0 {
            eprintln!("{}", judged.output);
        }
        Ok((judged.passed, judged.failed))
    }

    /// npm's packages as the lock file has them; those that are there already stay.
    fn install_packages(&self, log: &Path) -> Result<()> {
        let wanted = fs::read(self.web.join("package-lock.json"))?;
        // Beside the packages, so that it goes with them.
        let stamp = self.web.join("node_modules/.installed");
        if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(());
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"])
            .current_dir(&self.web);
        must(&mut npm, log).context("npm needs its registry")?;
        fs::write(&stamp, wanted).context("cannot write beside npm's packages")
    }

    /// Node with a script, in the page's folder.
    fn node(&self, script: &str) -> Command {
        let mut node = Command::new("node");
        node.arg(script)
            .current_dir(&self.web)
            .env("MOTET_WEB_OUT", &self.folder);
        node
    }

    /// Node with a script that compares the lab with the command `motet`.
    fn script(&self, script: &str, motet: &Path) -> Script<'_> {
        let mut node = self.node(script);
        node.arg(motet)
            .arg(self.web.join("generated"))
            .arg(self.workspace.root.join("scenarios"));
        Script { page: self, node }
    }

    /// What Playwright finds in Chromium of the page in `folder`, by all tests or by those that are
    /// called so.
    fn look(&self, folder: &Path, tests: Option<&str>) -> Result<Judged> {
        let figures = self.figures_file();
        if figures.exists() {
            fs::remove_file(&figures).context("cannot remove old figures")?;
        }
        // A port that nobody has; other checks may run on this machine.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut playwright = self.node("node_modules/@playwright/test/cli.js");
        playwright
            .arg("test")
            .args(tests.map(|tests| format!("--grep={tests}")))
            .env("MOTET_WEB_OUT", folder)
            .env("MOTET_WEB_PORT", port.to_string())
            .env("MOTET_WEB_FIGURES", &figures)
            .env(
                "MOTET_WEB_RESULTS",
                self.workspace.target.join("web-results"),
            );
        if let Some(chromium) = tools::find(tools::CHROMIUM.program) {
            playwright.env("MOTET_CHROMIUM", chromium);
        }
        let log = self.workspace.scratch()?.join("web-look.log");
        let (good, output) = run_logged(&mut playwright, &log)?;
        Ok(Judged::of(good, output))
    }

    fn figures_file(&self) -> PathBuf {
        self.workspace.target.join("xtask/web-figures.jsonl")
    }

    /// What was measured of the page. It decides nothing: others may use the machine.
    fn noted(&self) -> String {
        let text = fs::read_to_string(self.figures_file()).unwrap_or_default();
        let figures = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        figures
            .map(|figure| {
                let word = |key: &str| figure[key].as_str().unwrap_or_default().to_owned();
                format!("; {} {} {}", word("what"), figure["value"], word("unit"))
            })
            .collect()
    }

    fn print_figures(&self) -> Result<()> {
        let motet = self.workspace.release_motet()?;
        let mut script = self.script("tests/figures.mjs", &motet);
        let output = script.node.output().context("cannot run node")?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let figures: Figures =
            serde_json::from_slice(&output.stdout).context("no figures were printed")?;
        let kilobytes = |bytes: u64| bytes as f64 / 1e3;
        println!(
            "wasm: {:.0} KB, {:.0} KB by gzip",
            kilobytes(figures.raw),
            kilobytes(figures.gzip)
        );
        row(
            "wasm, compressed by brotli",
            kilobytes(figures.brotli),
            "KB",
            [560.0, 450.0],
        );
        println!(
            "wasm that explains frames, loaded when asked for: {:.0} KB by brotli",
            kilobytes(figures.explainer_brotli)
        );
        println!(
            "60 s over three hops: {:.1} ms in WebAssembly, {:.1} ms as a program",
            figures.browser_ms, figures.native_ms
        );
        let ratio = figures.browser_ms / figures.native_ms;
        row("wasm against native", ratio, "times", [2.3, 1.5]);
        Ok(())
    }
}

/// A figure beside what it must be, and what was hoped for: less is better.
fn row(what: &str, value: f64, unit: &str, [must, moonshot]: [f64; 2]) {
    let verdict = match value {
        _ if value <= moonshot => "moonshot",
        _ if value <= must => "holds",
        _ => "MISSED",
    };
    println!("{what}: {value:.2} {unit}, must {must}, moonshot {moonshot}: {verdict}");
}

/// Node, about to run one of the tests' scripts.
struct Script<'p> {
    page: &'p Page<'p>,
    node: Command,
}

impl Script<'_> {
    fn arg(mut self, argument: PathBuf) -> Self {
        self.node.arg(argument);
        self
    }

    fn logged(mut self, log: &str) -> Result<Judged> {
        let log = self.page.workspace.scratch()?.join(log);
        let (good, output) = run_logged(&mut self.node, &log)?;
        Ok(Judged::of(good, output))
    }
}

impl Judged {
    /// Counts what the last lines say; what failed without saying so failed once.
    fn of(good: bool, output: String) -> Self {
        let flaky = flaky(&output);
        let passed = counted(&output, "passed") + counted(&output, "flaky");
        let failed = match good {
            true => 0,
            false => counted(&output, "failed").max(1),
        };
        Self {
            passed,
            failed,
            flaky,
            output: if good { String::new() } else { output },
        }
    }
}

/// The tests that Playwright lists below its line `N flaky`.
fn flaky(output: &str) -> Vec<String> {
    let mut lines = output.lines().map(str::trim);
    let _ = lines.find(|line| line.ends_with(" flaky"));
    let listed = lines.take_while(|line| line.contains(" › "));
    listed
        .map(|line| line.trim_end_matches(['─', ' ']).to_owned())
        .collect()
}

/// The number before the last `word`.
fn counted(output: &str, word: &str) -> u32 {
    let mut words: Vec<&str> = output.split_whitespace().collect();
    words.reverse();
    let mut pairs = words.windows(2);
    let found =
        pairs.find(|pair| pair[0].trim_end_matches(',') == word && pair[1].parse::<u32>().is_ok());
    found.and_then(|pair| pair[1].parse().ok()).unwrap_or(0)
}

/// What is missing of `needed`, or too old.
fn lack(needed: &[Tool]) -> Result<Option<String>> {
    if let Some(advice) = tools::absent(needed) {
        return Ok(Some(advice));
    }
    let output = Command::new("node").arg("--version").output()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let mut parts = version
        .trim_start_matches('v')
        .split('.')
        .map(str::parse::<u32>);
    let found = match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
        _ => (0, 0),
    };
    let (major, minor) = NODE_LEAST;
    Ok((found < NODE_LEAST)
        .then(|| format!("node is {version}, but the page needs {major}.{minor} or later")))
}

/// Packages in the page, and those that make or judge it, are under licences that allow it.
fn judge_licences(lock: &Path) -> Result<()> {
    let text =
        fs::read_to_string(lock).with_context(|| format!("cannot read {}", lock.display()))?;
    let lock: Value = serde_json::from_str(&text).context("package-lock.json is no JSON")?;
    let packages = lock["packages"]
        .as_object()
        .context("it names no packages")?;
    for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
        let licence = package["license"].as_str().unwrap_or("none");
        let is_tool = package["dev"] == Value::Bool(true);
        let is_allowed = PERMISSIVE.contains(&licence) || is_tool && licence == "MPL-2.0";
        ensure!(is_allowed, "{name} of npm is under the licence {licence}");
    }
    Ok(())
}

/// Runs a command without which there is no page.
fn must(command: &mut Command, log: &Path) -> Result<()> {
    let (good, output) = run_logged(command, log)?;
    ensure!(good, "{command:?} failed:\n{}", essence(&output));
    Ok(())
}

/// The crates that become WebAssembly. Each is built by itself, with no feature that only the other
/// one needs.
const LAB: [&str; 5] = module("motet-web");
const EXPLAINER: [&str; 5] = module("motet-web-explain");

const fn module(package: &str) -> [&str; 5] {
    [
        "--release",
        "--package",
        package,
        "--target",
        "wasm32-unknown-unknown",
    ]
}

const BUILDERS: &[Tool] = &[tools::NODE, tools::NPM];

/// Vite's.
const NODE_LEAST: (u32, u32) = (20, 19);

const PERMISSIVE: [&str; 6] = [
    "MIT",
    "Apache-2.0",
    "ISC",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "0BSD",
];
