/** The programs that the command line starts: `bin` passes them in as functions. */
import type { AgentConnectFlags, AgentFlags, AgentLeaving, AgentListenFlags, AgentStatus } from './agent.js';
import type { DoctorCheck } from './doctor-check.js';
import type { LocalFlags, LocalMachine } from './local.js';
import type { RotatedSecretsKey, ServeClock, ServeFlags } from './serve.js';
import type { ServicePrograms } from './service.js';
import type { StorePrograms } from './store.js';

export interface QuickstartFlags {
  /** True to keep running after the tour. */
  readonly keep: boolean;
  /** New directory for all its data; undefined for a temporary one. */
  readonly dir: string | undefined;
  /** True if standard output gets colours. */
  readonly color: boolean;
}

/**
 * Each call returns the exit status when the program ends, or throws a Fault. Long-running programs handle
 * SIGINT and SIGTERM themselves.
 */
export interface Programs {
  serve(flags: ServeFlags): Promise<number>;
  /** Has the running orchestrator rotate its secrets key; `config` and `data_dir` identify it. */
  rotateSecretsKey(flags: ServeFlags): Promise<RotatedSecretsKey>;
  /** Returns the clock check of the running orchestrator; with `accept`, confirms the clock first. */
  clock(flags: ServeFlags, accept: boolean): Promise<ServeClock>;
  /** Maintenance of the store, on the orchestrator's host. */
  readonly store: StorePrograms;
  readonly agent: {
    connect(flags: AgentConnectFlags): Promise<number>;
    /** Runs the agent, which waits for a discovery packet. */
    listen(flags: AgentListenFlags): Promise<number>;
    status(flags: AgentFlags): Promise<AgentStatus>;
    /** Forgets the pinned key of the orchestrator. The caller has obtained consent. */
    repin(flags: AgentFlags): Promise<void>;
    /** Returns what `leave` would delete. */
    planLeave(flags: AgentFlags): Promise<AgentLeaving>;
    /** Deletes the service, the identity, the pin and the journal. The caller has obtained consent. */
    leave(flags: AgentFlags): Promise<AgentLeaving>;
    /** Returns the JSON Schema of the agent's configuration file. */
    configSchema(): Promise<object>;
  };
  readonly service: ServicePrograms;
  /** Checks this machine: runtime, native modules, and the services of `orch` on it. Changes nothing, and never throws. */
  doctor(): Promise<readonly DoctorCheck[]>;
  local(flags: LocalFlags): Promise<LocalMachine>;
  quickstart(flags: QuickstartFlags): Promise<number>;
}
