// SPDX-License-Identifier: Apache-2.0
//! Connections to other executors that are kept between reads of the shuffle. Ballista's own pool is private to it, and
//! an execution engine has to bring one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use ballista_core::client::BallistaClient;
use ballista_core::client_pool::{BallistaClientPool, PooledClient};
use ballista_core::error::Result;
use ballista_core::extension::BallistaConfigGrpcEndpoint;
use ballista_core::utils::GrpcClientConfig;

type Address = (String, u16, GrpcClientConfig);

/// Connections that nobody uses, by where they lead to, and since when; the last one to become idle is taken first.
type Idle = HashMap<Address, Vec<(Instant, BallistaClient)>>;

/// Keeps connections until they have been idle for a while.
pub(crate) struct Connections {
    idle: Arc<Mutex<Idle>>,
    most_idle: Duration,
}

impl Connections {
    pub(crate) fn new(most_idle: Duration) -> Self {
        Self { idle: Arc::default(), most_idle }
    }
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connections").field("most_idle", &self.most_idle).finish_non_exhaustive()
    }
}

fn locked(idle: &Mutex<Idle>) -> MutexGuard<'_, Idle> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

fn close_old(idle: &mut Idle, most_idle: Duration) {
    idle.retain(|_, connections| {
        connections.retain(|(since, _)| since.elapsed() < most_idle);
        !connections.is_empty()
    });
}

#[async_trait]
impl BallistaClientPool for Connections {
    async fn acquire(
        &self,
        host: &str,
        port: u16,
        config: &GrpcClientConfig,
        customize_endpoint: Option<Arc<BallistaConfigGrpcEndpoint>>,
    ) -> Result<PooledClient> {
        let address = (host.to_owned(), port, config.clone());
        let kept = {
            let mut idle = locked(&self.idle);
            close_old(&mut idle, self.most_idle);
            idle.get_mut(&address).and_then(Vec::pop)
        };
        let client = match kept {
            Some((_, client)) => client,
            None => {
                BallistaClient::try_new(
                    host,
                    port,
                    config.max_message_size,
                    config.use_tls,
                    customize_endpoint,
                    config.io_retries_times,
                    config.io_retry_wait_time_ms,
                    config.initial_connection_window_size,
                    config.initial_stream_window_size,
                )
                .await?
            }
        };
        let idle = Arc::clone(&self.idle);
        let give_back = move |client| locked(&idle).entry(address).or_default().push((Instant::now(), client));
        Ok(PooledClient::new(client, Box::new(give_back)))
    }

    async fn evict_idle(&self) {
        close_old(&mut locked(&self.idle), self.most_idle);
    }
}
