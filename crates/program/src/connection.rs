//! Arguments of every command that keeps connections to servers: reconnection, silence and stops.

use std::time::Duration;

use clap::Args;
use net::hosts::BackoffOptions;
use net::websocket::SocketOptions;

use crate::help::EXPERT;

/// How connections are kept.
#[derive(Debug, Args)]
pub struct ConnectionArgs {
    /// Delay before the first reconnection in milliseconds.
    #[arg(long, env = "WIREPROOF_BACKOFF_FIRST_MS", value_name = "MS", help_heading = EXPERT)]
    backoff_first_ms: Option<u64>,
    /// Maximum delay before a reconnection in milliseconds.
    #[arg(long, env = "WIREPROOF_BACKOFF_MAX_MS", value_name = "MS", help_heading = EXPERT)]
    backoff_max_ms: Option<u64>,
    /// Maximum silence of a server before reconnecting; a Nostr relay has half of it for an answer.
    #[arg(long, env = "WIREPROOF_IDLE_SECONDS", value_name = "SECONDS", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600), help_heading = EXPERT)]
    idle_seconds: u64,
    /// Seconds after which a run ends (exit code 3) if it has no cursor yet and has reached none of its hosts; 0 waits for ever.
    #[arg(long, env = "WIREPROOF_FIRST_CONTACT_SECONDS", value_name = "SECONDS")]
    #[arg(default_value_t = 30, value_parser = clap::value_parser!(u64).range(..=86_400))]
    #[arg(help_heading = EXPERT)]
    first_contact_seconds: u64,
    /// Maximum time in which Ctrl-C or SIGTERM ends the command, whatever blocks it.
    #[arg(long, env = "WIREPROOF_STOP_SECONDS", value_name = "SECONDS", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600), help_heading = EXPERT)]
    stop_seconds: u64,
}

impl ConnectionArgs {
    /// Maximum silence of a server.
    pub fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.idle_seconds)
    }

    /// Maximum time until a host is reached for the first time, if there is one.
    pub fn first_contact_limit(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.first_contact_seconds)).filter(|limit| !limit.is_zero())
    }

    /// Maximum time of a stop.
    pub fn stop_limit(&self) -> Duration {
        Duration::from_secs(self.stop_seconds)
    }

    /// The delays; `default` gives the missing ones.
    pub fn backoff(&self, default: BackoffOptions) -> BackoffOptions {
        let ms = |given: Option<u64>, default| given.map_or(default, Duration::from_millis);
        BackoffOptions {
            initial: ms(self.backoff_first_ms, default.initial),
            max: ms(self.backoff_max_ms, default.max),
            ..default
        }
    }

    /// The options of a socket; `default` gives the rest.
    pub fn socket<'s>(&self, default: SocketOptions<'s>) -> SocketOptions<'s> {
        let idle_timeout = self.idle_timeout();
        let ping_interval = default.ping_interval.min(idle_timeout / 2);
        SocketOptions { idle_timeout, ping_interval, ..default }
    }
}
