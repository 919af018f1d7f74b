/** The programs that the command line starts but does not contain: `bin` hands them in as functions. */

/**
 * Settings of `orch serve` as the command line gave them, by flat snake_case name (`agent_port`, `log_level`, …), and
 * beside them `config` (a path), `ready_file` (a path) and `config_schema` (true: print the schema and end). Text is
 * neither checked nor converted; what was not given is absent.
 */
export type ServeFlags = Readonly<Record<string, string | boolean>>;

/** What `orch agent connect`, `status` and `repin` were given; absent is undefined. */
export interface AgentFlags {
  readonly dataDir: string | undefined;
  /** The agent's YAML configuration file. */
  readonly config: string | undefined;
}

export interface AgentConnectFlags extends AgentFlags {
  /** `HOST` or `HOST:PORT` as it was typed. */
  readonly target: string;
  /** The orchestrator's public key as it was typed. */
  readonly orchestratorKey: string | undefined;
  readonly trustOnFirstUse: boolean;
  readonly hostname: string | undefined;
  /** Asks whether to trust a key that nobody named; null when there is no terminal to ask on. */
  readonly confirmKey: ((question: string) => Promise<boolean>) | null;
}

export interface QuickstartFlags {
  /** Stay up after the tour instead of stopping. */
  readonly keep: boolean;
  /** The new directory for everything it makes; undefined picks one. */
  readonly dir: string | undefined;
  /** Colours are welcome on standard output. */
  readonly color: boolean;
}

/** What `orch agent status` tells about this machine's agent: printed as it is, one field a line. */
export type AgentStatus = Readonly<Record<string, string | number | boolean | null>>;

/**
 * Each call returns when the program has ended, with its exit status, or throws a Fault. The long-running ones handle
 * SIGINT and SIGTERM themselves.
 */
export interface Programs {
  serve(flags: ServeFlags): Promise<number>;
  readonly agent: {
    connect(flags: AgentConnectFlags): Promise<number>;
    status(flags: AgentFlags): Promise<AgentStatus>;
    /** Forgets the pinned key of the orchestrator. The command line has asked before. */
    repin(flags: AgentFlags): Promise<void>;
  };
  quickstart(flags: QuickstartFlags): Promise<number>;
}
