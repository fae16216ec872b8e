//! Engines that listen: that together they compute as one does, whom they serve, and how a host learns that one is lost.

#[path = "common/computing.rs"]
mod computing;
#[path = "common/mod.rs"]
mod programs;
#[path = "common/relay.rs"]
mod relay;

use computing::plans::{reach, row, source, view};
use computing::{config, create, run, Outcome, LOWER, UPPER};
use engine::{Config, DataflowId, Embedded, Engine, Form, Read as Reading, StopReason};
use engine_process::{frame, Cluster, Secret};
use plan::{Recursion, SourceId};
use programs::{listeners, Listener, SecretFile};
use relay::Relay;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

fn start(count: usize, name: &str) -> (Vec<Listener>, Vec<String>, SecretFile) {
    let file = SecretFile::new(name, "a secret of some length");
    let (listeners, addresses) = listeners(count, &file);
    (listeners, addresses, file)
}

fn cluster(addresses: &[String], file: &SecretFile) -> Cluster {
    let secret = Secret::read(&file.0).expect("a secret");
    Cluster::start(addresses, &secret, &config()).expect("the engines answer")
}

#[test]
fn several_compute_as_one_does() {
    let embedded = run(&mut Embedded::start(config()));
    let (_listeners, addresses, file) = start(3, "compute");
    assert!(embedded.last().is_some_and(|rows| rows.len() > 20), "{embedded:?}");
    for workers in [1, 2] {
        let secret = Secret::read(&file.0).expect("a secret");
        let config = Config { workers, ..config() };
        let mut cluster = Cluster::start(&addresses, &secret, &config).expect("the engines answer");
        for (step, (expected, found)) in embedded.iter().zip(run(&mut cluster)).enumerate() {
            assert_eq!(expected, &found, "at step {step} with {workers} workers each");
        }
    }
}

#[test]
fn what_one_of_them_stops_is_stopped_for_its_reason() {
    let (_listeners, addresses, file) = start(3, "stop");
    let mut engine = cluster(&addresses, &file);
    for number in 0..5 {
        let id = DataflowId(10 + number);
        create(&mut engine, id, &reach(Recursion::FixpointDistinct));
        let chain = (0..200).map(|node| (row(&[node, node + 1]), 1, 1)).collect();
        engine.update(id, SourceId(0), chain);
        engine.update(id, SourceId(1), vec![(row(&[0]), 1, 1)]);
        engine.advance(2 + number);
        let mut outcome = Outcome::default();
        outcome.wait(&mut engine, |of| !of.stopped.is_empty());
        let [(stopped, reason)] = &outcome.stopped[..] else { panic!("{:?}", outcome.stopped) };
        assert_eq!(*stopped, id);
        assert!(matches!(reason, StopReason::RecursionLimit { .. }), "{reason:?}");
    }
    // The others of the engines go on.
    assert_eq!(run(&mut engine).len(), run(&mut Embedded::start(config())).len());
}

#[test]
fn a_host_learns_which_one_is_lost() {
    let (mut listeners, addresses, file) = start(3, "lost");
    let mut engine = cluster(&addresses, &file);
    create(&mut engine, LOWER, &view(&[1], source(0), 1));
    drop(listeners.remove(1));
    let mut outcome = Outcome::default();
    outcome.wait(&mut engine, |of| of.ended.is_some());
    let ended = outcome.ended.expect("it has ended");
    assert!(ended.starts_with(&addresses[1]), "{ended}");
    drop(engine);
    // The other two serve the next one.
    let mut engine = cluster(&[addresses[0].clone(), addresses[2].clone()], &file);
    assert!(!run(&mut engine).is_empty());
}

#[test]
fn a_dataflow_that_reads_an_index_that_is_gone_is_stopped() {
    let (_listeners, addresses, file) = start(2, "index");
    let mut engine = cluster(&addresses, &file);
    let plan = view(&[1], source(0), 1);
    let read = Reading { source: SourceId(0), key: vec![0], index: DataflowId(99) };
    engine.create_reading(UPPER, (&plan, Form::of(&plan)), &[read], 1);
    let mut outcome = Outcome::default();
    outcome.wait(&mut engine, |of| !of.stopped.is_empty());
    assert_eq!(outcome.stopped, [(UPPER, StopReason::IndexGone)]);
    // Dataflows that come later meet as before.
    assert!(!run(&mut engine).is_empty());
}

#[test]
fn nobody_is_served_who_does_not_have_the_secret() {
    let (_listeners, addresses, file) = start(1, "secret");
    let other = SecretFile::new("other", "another secret, long enough");
    let other = Secret::read(&other.0).expect("a secret");
    let refused = Cluster::start(&addresses, &other, &config()).err().expect("an error");
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
    assert!(refused.to_string().contains("does not have the same secret"), "{refused}");
    // Nor who says something else, or nothing.
    let greeting = frame::GREETING;
    for words in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[b'x'; 200], greeting, b""] {
        let mut stream = TcpStream::connect(&addresses[0]).expect("it listens");
        stream.write_all(words).expect("it listens");
        stream.shutdown(Shutdown::Write).expect("a socket");
        let mut said = Vec::new();
        // It may be reset before all has been read.
        let _ = stream.read_to_end(&mut said);
        assert!(said.len() <= greeting.len(), "{:?}", String::from_utf8_lossy(&said));
    }
    assert!(!run(&mut cluster(&addresses, &file)).is_empty());
}

#[test]
fn a_secret_that_is_no_secret_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let short = SecretFile::new("short", "too short\n");
    let open = SecretFile::new("open", "a secret of some length");
    std::fs::set_permissions(&open.0, std::fs::Permissions::from_mode(0o640)).expect("a file");
    let why = |path| Secret::read(path).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(why(&short.0).contains("less than 16 bytes"), "{}", why(&short.0));
    assert!(why(&open.0).contains("its owner alone"), "{}", why(&open.0));
    assert!(why(std::path::Path::new("/nowhere")).contains("cannot be opened"));
}

/// Engines of which the first one is behind a relay, for the host and for the others.
fn start_relayed(name: &str) -> (Vec<Listener>, Vec<String>, SecretFile, Relay) {
    let (listeners, mut addresses, file) = start(3, name);
    let relay = Relay::start(&addresses[0]);
    addresses[0].clone_from(&relay.address);
    (listeners, addresses, file, relay)
}

#[test]
fn a_slow_network_changes_nothing_but_the_time() {
    let (_listeners, addresses, file, relay) = start_relayed("slow");
    relay.manner.delay.store(5, Relaxed);
    assert_eq!(run(&mut cluster(&addresses, &file)), run(&mut Embedded::start(config())));
}

#[test]
fn an_engine_that_cannot_be_heard_by_another_one_is_lost() {
    let (_listeners, addresses, file, relay) = start_relayed("silent");
    let mut engine = cluster(&addresses, &file);
    create(&mut engine, LOWER, &reach(Recursion::FixpointDistinct));
    engine.update(LOWER, SourceId(1), vec![(row(&[0]), 1, 1)]);
    engine.advance(2);
    let mut outcome = Outcome::default();
    outcome.wait(&mut engine, |of| of.frontiers.get(&LOWER) == Some(&2));
    relay.manner.is_silent.store(true, Relaxed);
    let since = Instant::now();
    engine.update(LOWER, SourceId(0), vec![(row(&[0, 1]), 2, 1)]);
    engine.advance(3);
    outcome.wait(&mut engine, |of| of.ended.is_some());
    let ended = outcome.ended.expect("it has ended");
    assert!(ended.contains(&addresses[0]) && since.elapsed() < Duration::from_secs(25), "{ended}");
}

#[test]
fn a_connection_that_is_cut_anywhere_is_a_lost_engine() {
    let (_listeners, addresses, file, relay) = start_relayed("cut");
    let greeting = frame::GREETING.len() as u64;
    let mut connected = 0;
    for bytes in [1, greeting, greeting + 40, greeting + 70, greeting + 100, 300, 1000, 5000] {
        relay.manner.bytes.store(bytes, Relaxed);
        let secret = Secret::read(&file.0).expect("a secret");
        let Ok(mut engine) = Cluster::start(&addresses, &secret, &config()) else { continue };
        connected += 1;
        create(&mut engine, LOWER, &reach(Recursion::FixpointDistinct));
        let mut outcome = Outcome::default();
        let mut time = 1;
        while outcome.ended.is_none() && outcome.stopped.is_empty() {
            let edges = (0..100).map(|node| (row(&[node, node + time as i64]), time, 1)).collect();
            engine.update(LOWER, SourceId(0), edges);
            time += 1;
            engine.advance(time);
            outcome.take(&mut engine);
            assert!(time < 100_000, "it is not lost after {bytes} bytes");
            thread::sleep(Duration::from_millis(1));
        }
        let is_lost = |reason: &StopReason| matches!(reason, StopReason::NotConnected { .. });
        assert!(outcome.stopped.iter().all(|(_, reason)| is_lost(reason)), "{:?}", outcome.stopped);
    }
    assert!(connected > 0);
    relay.manner.bytes.store(0, Relaxed);
    assert_eq!(run(&mut cluster(&addresses, &file)), run(&mut Embedded::start(config())));
}

#[test]
fn who_says_nothing_keeps_nobody_out_for_long() {
    let (_listeners, addresses, file) = start(2, "crowd");
    let crowd: Vec<TcpStream> =
        (0..600).map(|_| TcpStream::connect(&addresses[0]).expect("it listens")).collect();
    // They say a byte now and then, which is no greeting.
    for mut stream in &crowd {
        let _ = stream.write_all(b"p");
    }
    let secret = Secret::read(&file.0).expect("a secret");
    let until = Instant::now() + Duration::from_secs(60);
    let mut engine = loop {
        match Cluster::start(&addresses, &secret, &config()) {
            Ok(engine) => break engine,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
    };
    assert!(!run(&mut engine).is_empty());
}

#[test]
fn an_engine_is_one_of_them_once() {
    let (_listeners, addresses, file) = start(1, "twice");
    let secret = Secret::read(&file.0).expect("a secret");
    let twice = [addresses[0].clone(), addresses[0].clone()];
    let refused = Cluster::start(&twice, &secret, &config()).err().expect("an error");
    assert!(refused.to_string().contains("is named twice"), "{refused}");
    // By another name it is two of them.
    let port = addresses[0].rsplit(':').next().expect("a port");
    let both = [addresses[0].clone(), format!("localhost:{port}")];
    match Cluster::start(&both, &secret, &config()) {
        Ok(mut engine) => assert_eq!(run(&mut engine), run(&mut Embedded::start(config()))),
        // Not every machine has that name.
        Err(error) => assert!(error.to_string().contains("localhost"), "{error}"),
    }
}

#[test]
fn many_dataflows_meet_at_once() {
    let (_listeners, addresses, file) = start(4, "many");
    let mut engine = cluster(&addresses, &file);
    let plan = view(&[1], source(0), 1);
    let ids: Vec<DataflowId> = (100..220).map(DataflowId).collect();
    for id in &ids {
        create(&mut engine, *id, &plan);
        engine.update(*id, SourceId(0), vec![(row(&[1]), 1, 1)]);
    }
    engine.advance(2);
    let mut outcome = Outcome::default();
    outcome.wait(&mut engine, |of| of.rows.len() == ids.len());
    assert!(outcome.stopped.is_empty(), "{:?}", outcome.stopped);
}
