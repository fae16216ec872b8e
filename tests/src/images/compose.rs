//! The compose file of `docker/`, as Docker Compose itself reads it. Without a registry nobody can start all of it here: what it says
//! is compared with the files that it mounts and the image that it builds, and its servers are run by scripts as it says.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{ensure, Context, Result};
use harness::installation::Build;
use serde_json::Value;

/// Those that run our image.
const SERVERS: [&str; 2] = ["primary", "standby"];
const ENGINES: [&str; 3] = ["engine-1", "engine-2", "engine-3"];

const MAIN: &str = "docker/compose.yaml";
const WITH_ENGINES: &str = "docker/compose.engines.yaml";

/// What the file says, with all defaults filled in and all paths absolute.
struct Compose {
    project: PathBuf,
    services: Value,
}

pub fn check(build: &Build) -> Result<()> {
    Compose::read(build, &[MAIN, WITH_ENGINES])?.engines_fit()?;
    let compose = Compose::read(build, &[MAIN])?;
    compose.mounts_exist()?;
    SERVERS.iter().try_for_each(|server| compose.server_fits(server))?;
    compose.addresses_lead_to_services()?;
    compose.board_is_found()
}

/// Leaves for scripts what each container is given: NAME.env has a variable on each line, NAME.command a word.
pub fn hand_to(build: &Build, folder: &Path) -> Result<()> {
    let compose = Compose::read(build, &[MAIN])?;
    for name in ["primary", "standby", "postgres-exporter"] {
        compose.hand(name, folder, name)?;
    }
    let compose = Compose::read(build, &[MAIN, WITH_ENGINES])?;
    ENGINES.iter().try_for_each(|name| compose.hand(name, folder, name))?;
    compose.hand("primary", folder, "primary-with-engines")
}

impl Compose {
    fn read(build: &Build, files: &[&str]) -> Result<Compose> {
        let project = fs::canonicalize(&build.project)?;
        let program = std::env::var_os("EDDY_COMPOSE").unwrap_or_else(|| "docker-compose".into());
        let output = Command::new(program)
            .args(files.iter().flat_map(|file| ["--file".into(), project.join(file)]))
            .args(["config", "--format", "json"])
            // Which the file has defaults for.
            .env_remove("PG_MAJOR")
            .output()
            .context("running Docker Compose, which make docker-test unpacks")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "docker compose config: {errors}");
        ensure!(errors.is_empty(), "docker compose config warns: {errors}");
        let mut file: Value = serde_json::from_slice(&output.stdout)?;
        Ok(Compose { project, services: file["services"].take() })
    }

    /// Leaves for scripts what a container is given, in files of that name.
    fn hand(&self, service: &str, folder: &Path, name: &str) -> Result<()> {
        let variables = self.variables(service).map(|(name, value)| format!("{name}={value}\n"));
        fs::write(folder.join(format!("{name}.env")), variables.collect::<String>())?;
        let words = ["entrypoint", "command"].map(|part| self.service(service)[part].as_array());
        let words = words.into_iter().flatten().flatten().filter_map(Value::as_str);
        let lines: String = words.map(|word| format!("{word}\n")).collect();
        Ok(fs::write(folder.join(format!("{name}.command")), lines)?)
    }

    /// The primary names all engines, at the port at which they listen, and has their secret.
    fn engines_fit(&self) -> Result<()> {
        let script = self.text("docker/engine.sh")?;
        let port = script.split("ENGINE_PORT:-").nth(1).and_then(|rest| rest.split('}').next());
        let port = port.context("a port in engine.sh")?;
        let hosts: Vec<String> = ENGINES.iter().map(|name| format!("{name}:{port}")).collect();
        let setting = format!("eddy.engine_hosts={}", hosts.join(", "));
        let command = self.service("primary")["command"].to_string();
        ensure!(command.contains(&setting), "{command} has no {setting}");
        let secret = |name: &str| {
            let mut variables = self.variables(name);
            variables
                .find(|(name, _)| *name == "ENGINE_SECRET")
                .map(|(_, secret)| secret.to_owned())
        };
        let of_primary = secret("primary").context("a secret")?;
        for name in ENGINES {
            ensure!(secret(name).as_ref() == Some(&of_primary), "{name} has another secret");
            ensure!(self.service(name)["entrypoint"][0] == "/usr/local/bin/engine.sh", "{name}");
        }
        Ok(())
    }

    fn service(&self, name: &str) -> &Value {
        &self.services[name]
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.services.as_object().into_iter().flat_map(|services| services.keys())
    }

    fn variables(&self, name: &str) -> impl Iterator<Item = (&String, &str)> {
        let variables = self.service(name)["environment"].as_object();
        variables.into_iter().flatten().filter_map(|(name, value)| Some((name, value.as_str()?)))
    }

    /// Kind, source and place of what a service mounts.
    fn mounts(&self, name: &str) -> impl Iterator<Item = (&str, &str, &str)> {
        let mounts = self.service(name)["volumes"].as_array();
        mounts.into_iter().flatten().filter_map(|mount| {
            Some((mount["type"].as_str()?, mount["source"].as_str()?, mount["target"].as_str()?))
        })
    }

    fn text(&self, path: &str) -> Result<String> {
        fs::read_to_string(self.project.join(path)).with_context(|| path.to_owned())
    }

    /// Docker would make an empty folder of a file that is not there.
    fn mounts_exist(&self) -> Result<()> {
        let mut files = 0;
        for name in self.names() {
            for (_, source, _) in self.mounts(name).filter(|(kind, ..)| *kind == "bind") {
                ensure!(Path::new(source).is_file(), "{name} mounts {source}, which is no file");
                files += 1;
            }
        }
        ensure!(files >= 7, "only {files} files are mounted");
        Ok(())
    }

    /// The image has the arguments, the variables, the data folder and the port that the file speaks of.
    fn server_fits(&self, name: &str) -> Result<()> {
        let build = &self.service(name)["build"];
        ensure!(build["context"].as_str().map(Path::new) == Some(&self.project), "{build}");
        let file = self.text(build["dockerfile"].as_str().context("a file to build by")?)?;
        for argument in build["args"].as_object().into_iter().flat_map(|arguments| arguments.keys())
        {
            let declared = format!("ARG {argument}=");
            ensure!(file.lines().any(|line| line.starts_with(&declared)), "no {declared}");
        }
        let scripts = ["docker/entrypoint.sh", "docker/standby.sh", "docker/compose/primary.sh"];
        let scripts =
            scripts.map(|path| self.text(path)).into_iter().collect::<Result<String>>()?;
        for (variable, _) in self.variables(name) {
            ensure!(scripts.contains(variable.as_str()), "nothing in the image reads {variable}");
        }
        let volume = self.mounts(name).find(|(kind, ..)| *kind == "volume");
        let data = volume.context("a volume")?.2;
        ensure!(file.contains(&format!("ARG PGDATA={data}\n")), "{data} is not the data folder");
        let port = &self.service(name)["ports"][0]["target"];
        ensure!(file.contains(&format!("EXPOSE {port}\n")), "{port} is not the image's port");
        Ok(())
    }

    /// Hosts in addresses are names of services, and Prometheus has the port that others reach it by.
    fn addresses_lead_to_services(&self) -> Result<()> {
        let scraped = self.text("docker/monitoring/prometheus.yaml")?;
        let source = self.text("docker/compose/datasource.yaml")?;
        let mut texts = vec![scraped, source.clone()];
        for name in self.names() {
            texts.extend(self.variables(name).map(|(_, value)| value.to_owned()));
        }
        let names: BTreeSet<&str> = self.names().map(String::as_str).collect();
        let mut found = BTreeSet::new();
        for host in texts.iter().flat_map(|text| hosts(text)) {
            ensure!(names.contains(host), "{host} is no service");
            found.insert(host);
        }
        ensure!(
            found == BTreeSet::from(["postgres-exporter", "primary", "prometheus"]),
            "{found:?}"
        );
        let port = &self.service("prometheus")["ports"][0]["target"];
        ensure!(
            source.contains(&format!("http://prometheus:{port}\n")),
            "Grafana asks another port"
        );
        Ok(())
    }

    /// Prometheus finds its rules beside its settings, Grafana the board where its provider looks.
    fn board_is_found(&self) -> Result<()> {
        let place = |service: &str, file: &str| {
            let mount = self.mounts(service).find(|(_, source, _)| source.ends_with(file));
            mount.map(|(.., target)| target.to_owned()).with_context(|| format!("{file} mounted"))
        };
        let settings = place("prometheus", "prometheus.yaml")?;
        let rules = place("prometheus", "alerts.yaml")?;
        ensure!(
            settings == "/etc/prometheus/prometheus.yml",
            "Prometheus does not read {settings}"
        );
        ensure!(Path::new(&rules) == Path::new("/etc/prometheus/alerts.yaml"), "rules at {rules}");
        ensure!(
            self.text("docker/monitoring/prometheus.yaml")?.contains("- alerts.yaml\n"),
            "rules"
        );
        let board = place("grafana", "dashboard.json")?;
        let folder = Path::new(&board).parent().context("a folder")?.display().to_string();
        let provider = self.text("docker/compose/boards.yaml")?;
        ensure!(
            provider.contains(&format!("path: {folder}\n")),
            "Grafana does not look in {folder}"
        );
        let exporter = place("postgres-exporter", "queries.yaml")?;
        let command = self.service("postgres-exporter")["command"].to_string();
        ensure!(command.contains(&format!("--extend.query-path={exporter}\"")), "{command}");
        Ok(())
    }
}

/// The hosts of addresses: behind `//` and a user, behind `host=`, and targets of Prometheus in quotes.
fn hosts(text: &str) -> Vec<&str> {
    let is_end = |letter: char| ":/ \"\n".contains(letter);
    let of_urls = text.split("://").skip(1).map(|rest| {
        let authority = rest.split(['/', '\n', '"']).next().unwrap_or_default();
        authority.rsplit('@').next().unwrap_or_default()
    });
    let of_settings = text.split("host=").skip(1);
    let of_targets = text.split("targets: [\"").skip(1);
    of_urls
        .chain(of_settings)
        .chain(of_targets)
        .map(|host| host.split(is_end).next().unwrap_or_default())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::hosts;

    #[test]
    fn hosts_are_found_in_addresses_of_each_form() {
        let text = "postgresql://me:secret@one:5432/db?a=b\nhost=two user=x\n- targets: [\"three:1\"]\nhttp://four:2\n";
        assert_eq!(hosts(text), ["one", "four", "two", "three"]);
    }
}
