/** `orch serve` and the commands that ask a running orchestrator of this host. */

/**
 * Settings of `orch serve` from the command line, by flat snake_case name (`agent_port`, `log_level`, …), and
 * `config` (a path), `ready_file` (a path), `new_epoch` (true: begin one), `new_store` and `new_identity` (true: the
 * old one is lost) and `config_schema` (true: print the schema and end). Values are unchecked text; absent options are absent keys.
 */
export type ServeFlags = Readonly<Record<string, string | boolean>>;

/** State of the orchestrator's clock check. */
export interface ServeClock {
  /** Time of the clock (RFC 3339). */
  readonly now: string;
  /** Milliseconds that the clock jumped beyond the elapsed time; negative after it was set back. */
  readonly doubt_ms: number;
  /** True while retention is suspended. */
  readonly waits: boolean;
  /** Milliseconds that the newest audit event lies ahead of the clock; 0 if it does not. */
  readonly ahead_ms: number;
}

export interface RotatedSecretsKey {
  /** ID of the new key. */
  readonly key_id: string;
  /** File that keeps the previous key. */
  readonly kept: string | null;
  /** Number of re-encrypted secrets. */
  readonly secrets: number;
  /** Number of re-encrypted script outputs. */
  readonly outputs: number;
  /** Number of re-encrypted channel configurations. */
  readonly channels: number;
}
