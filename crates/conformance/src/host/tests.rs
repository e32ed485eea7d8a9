//! Settings and flags; the sockets themselves are tested by scripts.

use super::*;

#[test]
fn flags_say_what_a_host_is() {
    let flags = "profile=freebsd,local=fd00::7,mtu=1280,iw=4,rcvbuf=4096,sndbuf=2048,\
                 delack_ms=100,log=/tmp/x,quiet";
    let settings = Settings::from_flags(flags).unwrap();
    assert_eq!(settings.lender(), Profile::FreeBsd);
    assert_eq!(settings.local, "fd00::7".parse::<Ipv6Addr>().unwrap());
    assert_eq!((settings.config.rmss, settings.config.smss), (1220, 1220));
    assert_eq!(settings.config.initial_window, 4);
    assert_eq!((settings.recv_space, settings.send_space), (4096, 2048));
    assert_eq!(settings.config.ack_delay_ms, 100);
    assert!(settings.quiet && settings.log.is_some());
}

#[test]
fn the_profile_is_a_base_wherever_it_stands() {
    let settings = Settings::from_flags("iw=3,profile=linux").unwrap();
    assert_eq!(settings.lender(), Profile::Linux);
    assert_eq!(settings.config.initial_window, 3);
}

#[test]
fn unknown_flags_and_senseless_values_are_errors() {
    for flags in [
        "bogus=1",
        "bogus",
        "mtu=1279",
        "mtu=x",
        "iw=256",
        "profile=solaris",
        "local=1.2.3.4",
        "quiet=1",
        "log=",
        "delack_ms=501",
    ] {
        assert!(Settings::from_flags(flags).is_err(), "{flags}");
    }
}

#[test]
fn knobs_act_refuse_or_stand_as_they_are() {
    let mut settings = Settings::of(Profile::FreeBsd);
    settings.set_knob("net.inet.tcp.rfc1323", "0").unwrap();
    assert!(!settings.config.timestamps && settings.window_scale.is_none());
    settings.set_knob("net.inet.tcp.ecn.enable", "1").unwrap();
    assert!(settings.config.ecn && settings.ecn_active);
    settings.set_knob("net.inet.tcp.keepinit", "15000").unwrap();
    assert_eq!(settings.connect_timeout_ms, 15_000);
    settings.set_knob("net.inet.tcp.blackhole", "0").unwrap();
    let mut motet = Settings::of(Profile::Motet);
    assert!(motet.set_knob("net.inet.tcp.insecure_rst", "1").is_err());
    for (name, value) in [
        ("net.inet.tcp.blackhole", "1"),
        ("net.inet.tcp.insecure_rst", "2"),
        ("net.ipv4.tcp_unheard_of", "1"),
        ("net.inet.tcp.unheard_of", "1"),
        ("net.inet.tcp.msl", "soon"),
    ] {
        assert!(settings.set_knob(name, value).is_err(), "{name}={value}");
    }
}

#[test]
fn settings_have_names() {
    let mut settings = Settings::of(Profile::Motet);
    assert!(settings.set_by_name("ack_delay_ms", 77) && settings.config.ack_delay_ms == 77);
    assert!(settings.set_by_name("nagle", 0) && !settings.config.nagle);
    assert!(!settings.set_by_name("nagle", 2));
    assert!(!settings.set_by_name("ack_every", 256));
    assert!(!settings.set_by_name("no_such_setting", 1));
}
