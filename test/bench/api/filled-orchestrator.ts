/** An orchestrator whose store is filled with absent agents and audit events by the product's own code, while it is stopped. */
import { rmSync } from 'node:fs';
import { monotonicFactory } from 'ulid';
import { AUDIT_HEAD_FILE, AUDIT_HEAD_KEY } from '../../../daemon/audit/audit-head.js';
import { GENESIS_HASH, hashOf } from '../../../daemon/core/audit-log.js';
import { type AuditRow, metadataColumn } from '../../../daemon/core/audit-store.js';
import { EVENT_SEVERITY, type EventType } from '../../../daemon/core/domain-event.js';
import { loadSqlite } from '../../../daemon/database/sqlite/load-sqlite.js';
import { insertAgent } from '../../../daemon/fleet/agent-store.js';
import { setTag } from '../../../daemon/fleet/tag-store.js';
import { Orchestrator } from '../orchestrator.js';

const DAY = 86_400_000;
/** Events of a transaction. */
const BATCH = 20_000;
/** Days over which the events are spread, less than they are kept. */
const DAYS = 60;
const FLAGS = ['--limits-login-per-minute', '100000', '--limits-failed-login-per-minute', '100000'];

export class FilledOrchestrator {
  readonly orchestrator: Orchestrator;
  private agents = 0;
  private token: string | null = null;

  private constructor(orchestrator: Orchestrator) {
    this.orchestrator = orchestrator;
  }

  static async start(): Promise<FilledOrchestrator> {
    return new FilledOrchestrator(await Orchestrator.start(FLAGS));
  }

  /** Returns the token of a session. */
  async session(): Promise<string> {
    this.token ??= await this.orchestrator.logIn();
    return this.token;
  }

  /** Fills in approved agents with a tag each until there are `size`. */
  async growTo(size: number): Promise<void> {
    if (size <= this.agents) return;
    await this.orchestrator.restart([], async () => {
      const { db, close } = await this.orchestrator.openStore();
      await db.transaction().execute(async (tx) => {
        for (; this.agents < size; this.agents += 1) {
          const node = idOfAgent(this.agents);
          await insertAgent(tx, { ...recordOf(this.agents), node_id: node });
          await setTag(tx, node, 'role', this.agents % 2 === 0 ? 'web' : 'db');
        }
      });
      await close();
    });
  }

  /**
   * Replaces the audit log by one with events of all kinds, spread over the last weeks. It is a new log because times that
   * decrease would be those of a clock that was set back.
   */
  async replaceEvents(count: number): Promise<void> {
    const { orchestrator } = this;
    await orchestrator.restart([], async () => {
      const Sqlite = await loadSqlite();
      const store = new Sqlite(orchestrator.storeFile);
      // These data need not survive a power cut.
      for (const setting of ['synchronous = OFF', 'cache_size = -500000']) store.pragma(setting);
      store.exec(`delete from audit_events; delete from audit_marks; delete from meta where key = '${AUDIT_HEAD_KEY}'`);
      rmSync(orchestrator.sandbox.path('serve', AUDIT_HEAD_FILE));
      const columns = COLUMNS.map((name) => `@${name}`).join(', ');
      const insert = store.prepare(`insert into audit_events (${COLUMNS.join(', ')}) values (${columns})`);
      const newUlid = monotonicFactory();
      const start = Date.now() - DAYS * DAY;
      let previous = GENESIS_HASH;
      const append = store.transaction((first: number) => {
        for (let index = first; index < Math.min(count, first + BATCH); index += 1) {
          const timestamp = start + Math.floor((index / count) * DAYS * DAY);
          const row = rowOfEvent(index, { timestamp, seq: index + 1, id: newUlid(timestamp) });
          previous = hashOf(row, previous);
          insert.run({ ...row, hash: previous });
        }
      });
      for (let first = 0; first < count; first += BATCH) append(first);
      store.close();
    });
  }

  stop(): Promise<void> {
    return this.orchestrator.stop();
  }
}

export const nameOfAgent = (index: number): string => `host-${String(index).padStart(5, '0')}`;

export const idOfAgent = (index: number): string => publicKeyOf(index).slice(0, 32);

const publicKeyOf = (index: number): string => String(index).padStart(6, '0').repeat(11).slice(2);

function recordOf(index: number): Omit<Parameters<typeof insertAgent>[1], 'node_id'> {
  const now = Date.now();
  const name = nameOfAgent(index);
  return {
    public_key: publicKeyOf(index),
    name,
    status: 'approved',
    created_at: now,
    updated_at: now,
    connected_at: now,
    last_seen_at: now,
    initial_hostname: `${name}.example`,
    initial_ip: '192.0.2.10',
    agent_version: '0.1.0',
    protocol_version: 1,
    attributes: {
      platform: 'linux',
      arch: 'x86_64',
      distro: 'debian',
      version: '13',
      init_system: 'systemd',
      hostname: name,
      kernel: '6.12.41+deb13-amd64',
      cpus: '4',
      memory_bytes: '8323166208',
    },
    state_operation_id: null,
    enrolment_token_id: null,
    trial_operation_id: null,
  };
}

const TYPES: readonly EventType[] = [
  'agent.connected',
  'agent.disconnected',
  'agent.attributes_changed',
  'agent.tags_changed',
  'operator.login',
  'agent.connected',
  'agent.disconnected',
  'operator.logout',
];

const COLUMNS = [
  'seq',
  'id',
  'timestamp',
  'event_type',
  'severity',
  'summary',
  'actor_id',
  'actor_name',
  'actor_type',
  'target_id',
  'target_name',
  'target_type',
  'metadata_json',
  'hash',
] as const satisfies readonly (keyof AuditRow)[];

/** One event in a hundred is of a rare kind. */
function rowOfEvent(index: number, place: Pick<AuditRow, 'seq' | 'id' | 'timestamp'>): Omit<AuditRow, 'hash'> {
  const agent = index % 1_000;
  const type = index % 100 === 0 ? 'agent.refused' : (TYPES[index % TYPES.length] as EventType);
  const [id, name] = [idOfAgent(agent), nameOfAgent(agent)];
  return {
    ...place,
    event_type: type,
    severity: EVENT_SEVERITY[type],
    summary: `${name}: event ${index} of a benchmark`,
    actor_id: id,
    actor_name: name,
    actor_type: 'agent',
    target_id: id,
    target_name: name,
    target_type: 'agent',
    ...metadataColumn({ request_id: `request-${index}`, remote_address: '192.0.2.10' }),
  };
}
