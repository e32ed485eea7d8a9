//! rust-mqtt on one mote; behind the other, three hops away, mosquitto.

use std::cell::RefCell;
use std::rc::Rc;

use motet_embassy::TcpSocket;
use rust_mqtt::Bytes;
use rust_mqtt::buffer::AllocBuffer;
use rust_mqtt::client::Client;
use rust_mqtt::client::event::Event;
use rust_mqtt::client::options::{
    ConnectOptions, PublicationOptions, SubscriptionOptions, TopicReference,
};
use rust_mqtt::types::{MqttString, TopicFilter, TopicName};

use crate::bridge::{self, Folder, Program};
use crate::motes::{Run, Setting};
use crate::report::Check;

const APP: &str = "rust-mqtt";
const PORT: u16 = 1883;

/// `count` messages over three hops, a third of each quality of service, to the broker and back:
/// each comes back once. None where there is no broker.
pub(crate) fn messages(frame_loss: f64, count: u32) -> Vec<Check> {
    let folder = Folder::new("mqtt");
    let configuration = folder.path().join("mosquitto.conf");
    let broker = Program::start("mosquitto", |port| {
        let lines = format!("listener {port} 127.0.0.1\nallow_anonymous true\n");
        let written = std::fs::write(&configuration, lines);
        written.expect("a temporary folder can be written to");
        vec!["-c".to_owned(), configuration.display().to_string()]
    });
    let Some(broker) = broker else {
        return Vec::new();
    };
    let mut run = Run::new(Setting {
        hops: 3,
        frame_loss,
        seed: 4,
    });
    let (server, address) = (run.server, broker.address());
    run.executor.spawn(async move {
        if let Err(error) = bridge::serve(server, PORT, address).await {
            eprintln!("{APP}: {error}");
        }
    });
    let (client, to) = (run.client, (run.address, PORT).into());
    let whole = Rc::new(RefCell::new(0));
    let counted = whole.clone();
    let ended = run.executor.block_on(u64::from(count) * 30, async move {
        let socket = embedded_nal_async::TcpConnect::connect(&client, to).await;
        let socket = socket.map_err(|error| error.to_string())?;
        let ended = converse(socket, count, &counted).await;
        // What closes in the background has the time that it is given.
        embassy_time::Timer::after_secs(200).await;
        ended
    });
    match ended {
        None => eprintln!("{APP}: {count} messages at {frame_loss} loss are not done in time"),
        Some(Err(reason)) => eprintln!("{APP}: {reason}"),
        Some(Ok(())) => {}
    }
    let percent = frame_loss * 100.0;
    let gone = run.places_lost();
    vec![
        Check::at_least(
            APP,
            &format!("messages there and back, three hops, {percent:.0} % loss"),
            f64::from(*whole.borrow()),
            count.into(),
            "msgs",
        ),
        Check::at_most(
            APP,
            &format!("places lost, {percent:.0} % loss"),
            Ok(gone as f64),
            0.0,
            "places",
        ),
    ]
}

fn text(number: u32) -> String {
    let value = number.wrapping_mul(2_654_435_761);
    format!("reading {number} of a mote: {value}")
}

/// Publishes to a topic that it has subscribed to, and counts in `whole` what comes back as it was.
async fn converse(socket: TcpSocket, count: u32, whole: &RefCell<u32>) -> Result<(), String> {
    let said = |error: &dyn std::fmt::Debug| format!("{error:?}");
    let mut buffer = AllocBuffer;
    let mut client = Client::<'_, '_, _, _, 1, 1, 1, 1, 16, 0, 0>::new(&mut buffer);
    let name = MqttString::try_from("mote").map_err(|error| said(&error))?;
    let options = ConnectOptions::new().clean_start();
    let connected = client.connect(socket, &options, Some(name)).await;
    connected.map_err(|error| said(&error))?;
    let topic = MqttString::try_from("lab/readings").map_err(|error| said(&error))?;
    let filter = TopicFilter::new(topic.as_borrowed()).ok_or("no filter")?;
    let topic = TopicName::new(topic.as_borrowed()).ok_or("no topic")?;
    let options = SubscriptionOptions::new().exactly_once();
    let subscribed = client.subscribe(filter, &options).await;
    subscribed.map_err(|error| said(&error))?;
    while !matches!(
        client.poll().await.map_err(|error| said(&error))?,
        Event::Suback(_)
    ) {}
    for number in 0..count {
        let options = PublicationOptions::new(TopicReference::Name(topic.as_borrowed()));
        let options = match number % 3 {
            0 => options,
            1 => options.at_least_once(),
            _ => options.exactly_once(),
        };
        let text = text(number);
        let published = client
            .publish(&options, Bytes::from(text.as_bytes()))
            .await
            .map_err(|error| said(&error))?;
        let (mut is_taken, mut is_back) = (published.is_none(), false);
        while !(is_taken && is_back) {
            match client.poll().await.map_err(|error| said(&error))? {
                Event::PublishAcknowledged(_) | Event::PublishComplete(_) => is_taken = true,
                Event::Publish(message) if message.message.as_bytes() == text.as_bytes() => {
                    is_back = true;
                }
                Event::Publish(_) => return Err(format!("message {number} has changed")),
                _ => {}
            }
        }
        *whole.borrow_mut() += 1;
    }
    Ok(())
}
