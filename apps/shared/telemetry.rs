//! What a device tells and asks over TCP: a reading for an MQTT broker, and a number that an HTTP
//! server has. The same file on devices, and in `cargo xtask interop over` beside a real broker.
//!
//! Both clients take any sockets of embedded-nal-async; nothing here names a stack.

use core::net::SocketAddr;

use embedded_nal_async::{Dns, TcpConnect};
use reqwless::client::HttpClient;
use reqwless::request::Method;
use rust_mqtt::Bytes;
use rust_mqtt::buffer::BumpBuffer;
use rust_mqtt::client::Client;
use rust_mqtt::client::event::Event;
use rust_mqtt::client::options::{
    ConnectOptions, DisconnectOptions, PublicationOptions, TopicReference,
};
use rust_mqtt::types::{MqttString, TopicName};

/// Why a report was not sent, or no answer received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failed {
    /// No connection to the broker.
    Connect,
    /// The broker refuses, or speaks no MQTT 5; or the connection ended.
    Broker,
    /// The server cannot be asked, or its answer is not read.
    Server,
    /// A name, a topic or an answer that is none.
    Malformed,
}

/// Publishes `message` at least once, and says goodbye.
///
/// # Errors
/// [`Failed`]; the broker may have the message even so.
pub(crate) async fn publish<N: TcpConnect>(
    net: &N,
    broker: SocketAddr,
    (device, topic): (&str, &str),
    message: &[u8],
) -> Result<(), Failed> {
    let device = MqttString::try_from(device).map_err(|_| Failed::Malformed)?;
    let topic = MqttString::try_from(topic).map_err(|_| Failed::Malformed)?;
    let topic = TopicName::new(topic).ok_or(Failed::Malformed)?;
    let socket = net.connect(broker).await.map_err(|_| Failed::Connect)?;

    // For what the broker sends: each of its packets here is shorter than this.
    let mut memory = [0; 256];
    let mut buffer = BumpBuffer::new(&mut memory);
    // One publication at a time, no subscription, no user property and no alias.
    let mut client = Client::<'_, '_, _, _, 1, 1, 1, 1, 4, 0, 0>::new(&mut buffer);
    let options = ConnectOptions::new().clean_start();
    let connected = client.connect(socket, &options, Some(device)).await;
    connected.map_err(|_| Failed::Broker)?;
    let options = PublicationOptions::new(TopicReference::Name(topic)).at_least_once();
    let published = client.publish(&options, Bytes::from(message)).await;
    published.map_err(|_| Failed::Broker)?;
    loop {
        match client.poll().await.map_err(|_| Failed::Broker)? {
            Event::PublishAcknowledged(_) => break,
            Event::PublishRejected(_) => return Err(Failed::Broker),
            _ => {}
        }
    }
    let ended = client.disconnect(&DisconnectOptions::new()).await;
    ended.map(drop).map_err(|_| Failed::Broker)
}

/// The decimal number at `url`.
///
/// # Errors
/// [`Failed::Server`], [`Failed::Malformed`].
pub(crate) async fn number<N: TcpConnect + Dns>(net: &N, url: &str) -> Result<u64, Failed> {
    let mut client = HttpClient::new(net, net);
    let mut buffer = [0; 512];
    let request = client.request(Method::GET, url).await;
    let mut request = request.map_err(|_| Failed::Server)?;
    let response = request.send(&mut buffer).await;
    let response = response.map_err(|_| Failed::Server)?;
    if !response.status.is_successful() {
        return Err(Failed::Server);
    }
    let body = response.body().read_to_end().await;
    let text = core::str::from_utf8(body.map_err(|_| Failed::Server)?);
    let text = text.map_err(|_| Failed::Malformed)?.trim();
    text.parse().map_err(|_| Failed::Malformed)
}
