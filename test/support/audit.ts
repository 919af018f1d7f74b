import { generateKeyPairSync } from 'node:crypto';
import { createAudit } from '../../daemon/audit/audit.js';
import { AuditKey } from '../../daemon/audit/checkpoint.js';
import type { RecordedEvent } from '../../daemon/core/audit-log.js';
import { type DomainEvent, type Party, SYSTEM } from '../../daemon/core/domain-event.js';
import { EventBus } from '../../daemon/core/event-bus.js';
import { TransactionalWriter } from '../../daemon/core/unit-of-work.js';
import type { OpenDatabase } from '../../daemon/database/database.js';
import type { Queryable } from '../../daemon/database/schema.js';
import { Machines } from '../../daemon/fleet/machines.js';
import { type Logger, silentLogger } from '../../src/kernel/logger.js';
import { ManualClock, newIds } from './database.js';
import { serveSettings } from './serve-settings.js';

export const operatorParty = (name: string): Party => ({ id: name.padEnd(32, '0'), name, type: 'operator' });
export const agentParty = (name: string, id = name.padEnd(32, '1')): Party => ({ id, name, type: 'agent' });

export const event = (change: Partial<DomainEvent> = {}): DomainEvent => ({
  type: 'orchestrator.started',
  actor: SYSTEM,
  target: SYSTEM,
  summary: 'something happened',
  metadata: {},
  ...change,
});

/** A writer with what it published, in order, on its bus. */
export function writerOf({ db }: OpenDatabase, clock = new ManualClock()) {
  const published: RecordedEvent[] = [];
  const bus = new EventBus(silentLogger);
  bus.subscribe('all', (one) => void published.push(one));
  const writer = new TransactionalWriter({
    db,
    clock,
    newId: newIds(clock),
    publish: (one) => bus.publish(one),
  });
  /** One unit that only emits. */
  const emit = (...events: readonly DomainEvent[]) =>
    writer.write(async (_tx, emit) => {
      for (const one of events) emit(one);
    });
  return { writer, bus, published, clock, emit, db };
}

export const newAuditKey = () => new AuditKey(generateKeyPairSync('ed25519').privateKey);

/** Everything about the audit log of a store, with a writer whose events it sees. */
export function auditOf(
  { db }: Pick<OpenDatabase, 'db'>,
  options: {
    readonly clock?: ManualClock;
    readonly logger?: Logger;
    readonly key?: AuditKey;
    readonly ageTime?: () => number;
    readonly epoch?: (db: Queryable) => Promise<number>;
    readonly retentionDays?: () => number | null;
  } = {},
) {
  const { clock = new ManualClock(), logger = silentLogger, key = newAuditKey() } = options;
  const bus = new EventBus(logger);
  const uow = new TransactionalWriter({ db, clock, newId: newIds(clock), publish: (one) => bus.publish(one) });
  const emit = (...events: readonly DomainEvent[]) =>
    uow.write(async (_tx, emit) => {
      for (const one of events) emit(one);
    });
  const { ageTime = () => clock.now(), epoch = async () => 1 } = options;
  const settings = () => serveSettings({ 'audit.retention_days': options.retentionDays?.() ?? 0 });
  const audit = createAudit({ db, uow, bus, clock, ageTime, logger, settings }, { key, epoch });
  return { ...audit, db, uow, bus, emit, key, clock };
}

/** The machines of a store, without the bus of its writer: nothing changes tags meanwhile. */
export const machinesOf = ({ db }: Pick<OpenDatabase, 'db'>): Machines =>
  new Machines({ db, bus: new EventBus(silentLogger) });
