/** The agent's terminals with their real process, as they are built, and the orchestrator's end of them. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, onTestFinished } from 'vitest';
import type { TerminalSettings } from '../../../../src/agent/terminal/policy.js';
import type { TerminalReport, Terminals, TerminalsOptions } from '../../../../src/agent/terminal/terminals.js';
import { loadOrCreateKey } from '../../../../src/identity/private-key.js';
import { type LogFields, type Logger, silentLogger } from '../../../../src/kernel/logger.js';
import { AGENT_DEFAULTS } from '../../../../src/settings/agent.js';
import { agentDecoder, encode } from '../../../../src/wire/codec.js';
import type { AgentMessageOf, OrchestratorMessageOf } from '../../../../src/wire/messages.js';
import { until } from '../../../support/orch.js';
import { TEST_SHELL } from '../../../support/test-shell.js';
import { place } from '../../support/place.js';
import { OrchestratorEnd, Relay } from './orchestrator-end.js';

const built = fileURLToPath(new URL('../../../../dist/src/agent/terminal/terminals.js', import.meta.url));
const decode = agentDecoder();

export const sessionId = (number: number): string => `01K${String(number).padStart(23, '0')}`;

export class AgentEnd {
  readonly orchestrator: OrchestratorEnd;
  readonly terminals: Terminals;
  readonly dataDir: string;
  readonly log: { readonly level: string; readonly message: string; readonly fields: LogFields | undefined }[] = [];
  readonly authLog: string[] = [];
  /** Held against the protocol. */
  readonly reports: TerminalReport[] = [];
  settings: TerminalSettings;
  /** Answers a list of sessions as the orchestrator does: those without a socket get a ticket. */
  reattaches = true;
  private number = 0;

  private constructor(
    orchestrator: OrchestratorEnd,
    create: typeof Terminals,
    dataDir: string,
    more: Partial<TerminalsOptions>,
  ) {
    this.orchestrator = orchestrator;
    this.dataDir = dataDir;
    this.settings = { ...AGENT_DEFAULTS, 'remote_terminal.enabled': true, 'remote_terminal.shell': TEST_SHELL };
    const at = (level: string) => (message: string, fields?: LogFields) =>
      void this.log.push({ level, message, fields });
    const logger: Logger = { ...silentLogger, info: at('info'), warn: at('warn'), error: at('error') };
    this.terminals = new create({
      dataDir,
      logger,
      settings: () => this.settings,
      authLog: (line) => void this.authLog.push(line),
      ...more,
    });
    this.terminals.reach({ host: '127.0.0.1', port: orchestrator.port, key: orchestrator.identity.publicKey });
    this.terminals.subscribe((report) => this.hear(report));
    onTestFinished(async () => {
      await this.terminals.stop();
      expect(orchestrator.complaints).toEqual([]);
    });
  }

  static async start(dataDir = place(), more: Partial<TerminalsOptions> = {}): Promise<AgentEnd> {
    if (!existsSync(built)) throw new Error('build first: npx tsc -b');
    const orchestrator = await new OrchestratorEnd().start();
    loadOrCreateKey(join(dataDir, 'identity.key'));
    const { Terminals: create } = (await import(
      pathToFileURL(built).href
    )) as typeof import('../../../../src/agent/terminal/terminals.js');
    return new AgentEnd(orchestrator, create, dataDir, more);
  }

  /** Asks for a session; `window` as of the relay. */
  open(
    more: Partial<OrchestratorMessageOf<'terminal_open'>> = {},
    window?: number | null,
  ): { id: string; relay: Relay } {
    this.number += 1;
    const id = more.session_id ?? sessionId(this.number);
    const relay = window === undefined ? new Relay() : new Relay(window);
    this.orchestrator.relays.set(id, relay);
    this.terminals.handle({
      type: 'terminal_open',
      session_id: id,
      ticket: this.orchestrator.ticket(),
      operator: 'ada',
      kind: 'shell',
      cols: 80,
      rows: 24,
      term: 'xterm',
      shell: null,
      command: null,
      timeout_secs: null,
      stdin: false,
      ...more,
    });
    return { id, relay };
  }

  /** Runs a command on pipes. */
  exec(command: readonly string[], more: Partial<OrchestratorMessageOf<'terminal_open'>> = {}, window?: number | null) {
    return this.open({ kind: 'exec', command: [...command], ...more }, window);
  }

  close(id: string): void {
    this.terminals.handle({ type: 'terminal_close', session_id: id });
  }

  /** The answer to a request. */
  async answer(id: string): Promise<AgentMessageOf<'terminal_answer'>> {
    const find = () => this.reports.find((report) => report.type === 'terminal_answer' && report.session_id === id);
    await until(() => find() !== undefined, `${id} is answered`);
    return find() as AgentMessageOf<'terminal_answer'>;
  }

  /** Resolves when the agent holds no session any more. */
  empty(): Promise<void> {
    return until(() => this.terminals.list().sessions.length === 0, 'all sessions are forgotten');
  }

  private hear(report: TerminalReport): void {
    decode(encode(report));
    this.reports.push(report);
    if (report.type !== 'terminals' || !this.reattaches) return;
    for (const { session_id, attached } of report.sessions) {
      if (attached) continue;
      const ticket = this.orchestrator.ticket();
      this.terminals.handle({ type: 'terminal_attach', session_id, ticket });
    }
  }
}
