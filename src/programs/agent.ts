/** `orch agent` on this machine. */

/** Options of each `orch agent` command; undefined if absent. */
export interface AgentFlags {
  readonly dataDir: string | undefined;
}

/** Options of the commands that run the agent. */
export interface AgentRunFlags extends AgentFlags {
  /** Public key of the orchestrator, as typed. */
  readonly orchestratorKey: string | undefined;
  /** Enrolment token. */
  readonly token: string | undefined;
  readonly trustOnFirstUse: boolean;
  readonly hostname: string | undefined;
  /** Path of the configuration file; undefined for the default one, if it exists. */
  readonly config: string | undefined;
}

export interface AgentConnectFlags extends AgentRunFlags {
  /** `HOST` or `HOST:PORT`, as typed. */
  readonly target: string;
  /** Asks whether to trust an unknown key; null without a terminal. */
  readonly confirmKey: ((question: string) => Promise<boolean>) | null;
}

export interface AgentListenFlags extends AgentRunFlags {
  /** UDP port of discovery; undefined for the default. */
  readonly port: number | undefined;
}

/** Status of this machine's agent, one printed field per key. */
export type AgentStatus = Readonly<Record<string, string | number | boolean | null>>;

export interface AgentLeaving {
  readonly data_dir: string;
  /** Service unit to stop and delete; null if there is none. */
  readonly service: string | null;
  /** Reason why a unit of that name is left alone; null if none is. */
  readonly service_kept: string | null;
}
