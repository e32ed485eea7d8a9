mod forming;
mod lab;
