/** `orch serve`. */
import { defineCommand } from '../define-command.js';
import { flag, negativeFlag, text } from '../option.js';

export const command = defineCommand({
  examples: [
    'orch serve',
    'orch serve --config /etc/orch/orchestrator.yaml',
    'orch serve --data-dir ./orch --api-port 0',
  ],
  detail: [
    'A flag stands above its variable (ORCH_SERVE_AGENT_PORT for --agent-port), and that above the configuration file.',
    'Stops within 10 seconds of SIGTERM or SIGINT; SIGHUP reads the configuration again.',
  ],
  access: 'local',
  ownsSignals: true,
  options: {
    config: text('FILE', 'configuration file; /etc/orch/orchestrator.yaml when it is there', { completes: 'file' }),
    config_schema: flag('print the JSON Schema of the configuration file and end'),
    ready_file: text('FILE', 'write the addresses there, as JSON, once connections are accepted', {
      completes: 'file',
    }),
    new_epoch: flag('begin a new epoch: after a data directory was copied back by hand'),
    new_store: flag('begin with an empty store beside the keys of one that is lost'),
    new_identity: flag('take another identity key for a lost one; agents have to be repinned'),
    data_dir: text('DIR', 'keys and store; /var/lib/orch for root, else below $XDG_STATE_HOME', { completes: 'file' }),
    agent_port: text('PORT', 'TCP port of the agent link; 4747, 0 picks a free one'),
    agent_host: text('ADDRESS', 'address that the agent link listens on; 0.0.0.0'),
    api_port: text('PORT', 'TCP port of the API; 4748, 0 picks a free one'),
    api_host: text('ADDRESS', 'address that the API listens on; 127.0.0.1'),
    advertised_host: text('NAME', 'name or address that others reach this host by'),
    bootstrap_key: text('KEY', 'public key of the first operator, hex or OpenSSH; used while there is none'),
    bootstrap_username: text('NAME', 'name of the first operator'),
    tls: negativeFlag('serve the API without TLS: on loopback, or behind a proxy'),
    tls_cert: text('FILE', "certificate of the API (PEM) instead of the service's own", { completes: 'file' }),
    tls_key: text('FILE', 'private key of that certificate (PEM)', { completes: 'file' }),
    trust_proxy_tls: flag('a proxy in front terminates TLS: trust its X-Forwarded-For and -Proto'),
    api_spki: text('HEX', "SHA-256 of the SPKI of the proxy's certificate"),
    removal_guard: text('N', 'most removals of one apply without --allow-removals; 10'),
    pending_capacity: text('N', 'most agents that wait for approval; 100'),
    session_token_expiry_secs: text('SECONDS', 'life of a session; 3600'),
    drift: negativeFlag('check no agent for drift unless somebody asks'),
    drift_interval: text('SECONDS', 'time in which each agent is checked for drift once; 3600'),
    drift_max_concurrent: text('N', 'most scheduled drift checks at a time; 8'),
    drift_skip_recently_applied: text('SECONDS', 'how long after an apply no drift check is scheduled; 300'),
    drift_retention_days: text('DAYS', 'how long drift records are kept; 30'),
    retention_operations_days: text('DAYS', 'how long operations are kept; 365'),
    retention_outputs_days: text('DAYS', 'how long outputs of scripts are kept; 90'),
    retention_notifications_days: text('DAYS', 'how long notifications are kept; 90'),
    retention_transcripts_days: text('DAYS', 'how long recordings of terminals are kept; 90'),
    terminal_record: text('WHEN', 'record terminals: required, best_effort or off; best_effort'),
    terminal_idle_secs: text('SECONDS', 'close a terminal in which nothing is typed for so long; 0, which is never'),
    terminal_detached_secs: text('SECONDS', 'close a terminal that nobody is attached to for so long; 1800'),
    terminal_max_secs: text('SECONDS', 'close a terminal that is open for so long; 43200'),
    terminal_agent_grace_secs: text('SECONDS', 'how long a terminal waits for its agent to come back; 120'),
    terminal_transcript_max_bytes: text('BYTES', 'largest recording of one terminal'),
    terminal_disk_floor_bytes: text('BYTES', 'record nothing while less than that is free on the disk'),
    terminal_per_operator: text('N', 'most terminals of one operator; 50'),
    notifications_allow_networks: text('CIDR,…', 'networks that channels may be in although they are not public'),
    notifications_allow_http: flag('send to channels without TLS too, on port 80'),
    metrics_token: text('TOKEN', 'token for scraping GET /api/v1/metrics without a login'),
    metrics_poll_interval: text('SECONDS', 'time in which each agent is asked for measurements once; 60'),
    metrics_retention: text('SECONDS', 'how long measurements are kept; 86400'),
    audit_retention_days: text('DAYS', 'how long audit events are kept, until set with orch audit retention; 90'),
    log_level: text('LEVEL', 'debug, info, warn or error; info'),
    log_format: text('FORMAT', 'json, pretty for people, or auto: pretty on a terminal; auto'),
    limits_body_bytes: text('BYTES', 'largest request body of the API'),
    limits_headers_timeout_secs: text('SECONDS', 'time for the headers of a request'),
    limits_request_timeout_secs: text('SECONDS', 'time for a whole request to arrive'),
    limits_login_per_minute: text('N', 'failed challenges and verifications a minute and address'),
    limits_failed_login_per_minute: text('N', 'failed verifications a minute, address and key'),
    limits_pending_per_address: text('N', 'most agents of one address that wait for approval'),
    limits_operations: text('N', 'most operations in progress'),
    limits_dispatch_secs: text('SECONDS', 'how long an apply waits for its agent'),
  },
  run: async ({ programs }, { tls: withoutTls, drift: withoutDrift, ...given }) => {
    const flags: [string, string | boolean][] = withoutTls ? [['tls_enabled', false]] : [];
    if (withoutDrift) flags.push(['drift_enabled', false]);
    for (const [name, value] of Object.entries(given)) {
      if (value !== undefined && value !== false) flags.push([name, value]);
    }
    return { exitStatus: await programs.serve(Object.fromEntries(flags)) };
  },
});
