/** An orchestrator whose store is on PostgreSQL, with real agents, while its database is killed, promoted, filled and slowed. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { OperationDetail } from '../../src/contract/operations.js';
import { World } from '../api/world.js';
import { temporaryDirectory } from '../support/database.js';
import { itInLong } from '../support/exhaustive.js';
import { noPgbouncer, TestPgbouncer } from '../support/pgbouncer.js';
import { noPostgres, TestPostgres } from '../support/postgres.js';
import { SlowWay } from '../support/slow-way.js';
import { fill } from '../support/tiny-disk.js';
import { until } from '../support/until.js';

const NAME = `an orchestrator on PostgreSQL${noPostgres === null ? '' : ` (skipped: ${noPostgres})`}`;
const NAMES = ['a1', 'a2'] as const;

describe.skipIf(noPostgres !== null)(NAME, () => {
  const stops: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
  });

  async function postgres(options: Parameters<typeof TestPostgres.start>[0] = {}): Promise<TestPostgres> {
    const server = await TestPostgres.start(options);
    stops.push(() => server.remove());
    await server.createDatabase('orch');
    return server;
  }

  async function fleet(url: string): Promise<LoadedFleet> {
    const loaded = new LoadedFleet();
    stops.push(() => loaded.dispose());
    await loaded.begin(url);
    return loaded;
  }

  it('loses nothing that it has acknowledged and does nothing twice when its server is killed under load', async () => {
    const server = await postgres();
    const loaded = await fleet(server.url('orch'));
    for (let round = 0; round < 3; round += 1) {
      await loaded.during(async () => {
        await sleep(1_000);
        await server.kill();
        await sleep(1_500);
        await server.boot();
      });
    }
    await loaded.check();
  });

  itInLong('goes on with a synchronous standby that is promoted in the place of a killed primary', async () => {
    const primary = await postgres();
    const standby = await primary.standby('second');
    stops.push(() => standby.remove());
    primary.configure(["synchronous_standby_names = 'second'"]);
    await primary.reload();
    await until(
      async () => (await primary.sql("select count(*) from pg_stat_replication where sync_state = 'sync'")) === '1',
      'the standby is synchronous',
    );
    const loaded = await fleet(`postgres://orch@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/orch`);
    await loaded.during(async () => {
      await sleep(1_000);
      await primary.kill();
      await standby.promote();
    });
    await loaded.check();
  });

  it('refuses writes on a full disk, says so, and goes on when there is room', async (context) => {
    if (process.geteuid?.() !== 0) return context.skip('only root can mount a tmpfs');
    const parent = temporaryDirectory();
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=160m,mode=755', 'tmpfs', parent]);
    onTestFinished(() => void execFileSync('umount', ['-l', parent]));
    execFileSync('chmod', ['755', parent]);
    const server = await postgres({
      parent,
      conf: ["max_wal_size = '32MB'", 'wal_recycle = off', "checkpoint_timeout = '30s'"],
    });
    const loaded = await fleet(server.url('orch'));
    const filler = join(parent, 'filler');
    await loaded.during(async () => {
      fill(filler);
      await until(async () => (await loaded.refusal()) !== null, 'a write is refused');
      expect((await loaded.refusal())?.code).toBe('store_unavailable');
      rmSync(filler);
      // A server whose log finds no room ends itself, and its service starts it again.
      if (!existsSync(join(server.data, 'postmaster.pid'))) await server.boot();
    });
    await loaded.check();
  });

  itInLong('works over a network of 5 ms a statement', async () => {
    const server = await postgres();
    const way = await SlowWay.to(server.port, 2.5);
    stops.push(() => way.close());
    const loaded = await fleet(`postgres://orch@127.0.0.1:${way.port}/orch`);
    await loaded.during(async () => undefined);
    await loaded.check();
  });

  itInLong('waits out a database that is silent', async () => {
    const server = await postgres();
    const way = await SlowWay.to(server.port, 0);
    stops.push(() => way.close());
    const loaded = await fleet(`postgres://orch@127.0.0.1:${way.port}/orch`);
    await loaded.during(async () => {
      way.hold();
      await until(async () => (await loaded.refusal()) !== null, 'a write is refused');
      way.release();
    });
    await loaded.check();
  });

  it.skipIf(noPgbouncer !== null)(
    `works behind a pooler of sessions, and refuses one of transactions${noPgbouncer === null ? '' : ` (skipped: ${noPgbouncer})`}`,
    async () => {
      const server = await postgres();
      const sharing = await TestPgbouncer.start(server.port, 'transaction');
      stops.push(() => sharing.stop());
      const refused = new World();
      stops.push(() => refused.sandbox.dispose());
      await expect(refused.start(['--store', `postgres://orch@127.0.0.1:${sharing.port}/orch`])).rejects.toThrow(
        'is a connection pooler that shares sessions between transactions',
      );
      const pooler = await TestPgbouncer.start(server.port, 'session');
      stops.push(() => pooler.stop());
      const loaded = await fleet(`postgres://orch@127.0.0.1:${pooler.port}/orch`);
      await loaded.during(async () => {
        await sleep(1_000);
        await server.kill();
        await sleep(1_000);
        await server.boot();
      });
      await loaded.check();
    },
  );
});

interface Problem {
  readonly code: string;
  readonly status: number;
}

/** A small fleet under load: operators who write, and applies whose scripts leave a line. */
class LoadedFleet {
  private readonly world = new World();
  private readonly nodes = new Map<string, string>();
  /** Tags by key that were acknowledged. */
  private readonly tags = new Map<string, string>();
  /** Operations that were acknowledged, and the line that each leaves. */
  private readonly applies = new Map<string, { readonly name: string; readonly line: string }>();
  private connectedAt = new Map<string, number>();
  private pid = 0;
  private count = 0;

  async begin(url: string): Promise<void> {
    await this.world.start(['--store', url]);
    this.pid = this.world.ready.pid;
    for (const name of NAMES) {
      const { nodeId } = await this.world.startAgent(name);
      this.nodes.set(name, nodeId);
      await this.world.gives(
        'setAgentStatus',
        { params: { node_id: nodeId }, body: { status: 'approved', name } },
        200,
      );
    }
    await this.writable();
    this.connectedAt = new Map((await this.agents()).map(({ node_id, connected_at }) => [node_id, connected_at]));
  }

  dispose(): Promise<void> {
    return this.world.sandbox.dispose();
  }

  /** Lets the load run while `fault` happens, and until everything is acknowledged again. */
  async during(fault: () => Promise<void>): Promise<void> {
    const over = new AbortController();
    const loads = [
      ...NAMES.map((name) => this.tagging(name, over.signal)),
      ...NAMES.map((name) => this.applying(name, over.signal)),
    ];
    const ends = Promise.all(loads);
    // It may fail before anything waits for it.
    ends.catch(() => undefined);
    try {
      await fault();
      await this.writable();
      const [tags, applies] = [this.tags.size, this.applies.size];
      await until(
        () => this.tags.size > tags + 5 && this.applies.size >= applies + NAMES.length,
        'operators and applies go on',
      );
    } finally {
      over.abort();
      await ends;
    }
  }

  /** The refusal of a write; null when it was accepted. */
  async refusal(): Promise<Problem | null> {
    const answer = await this.setTag(`probe-${this.next()}`, 'x', 'a1');
    return answer.status < 300 ? null : { status: answer.status, code: answer.json?.code ?? '' };
  }

  async check(): Promise<void> {
    await this.settled();
    expect(this.applies.size).toBeGreaterThanOrEqual(NAMES.length);
    expect(this.tags.size).toBeGreaterThan(5);
    const tags = (await this.agents()).map((agent) => agent.tags);
    expect(Object.assign({}, ...tags)).toMatchObject(Object.fromEntries(this.tags));
    for (const [operationId, { name, line }] of this.applies) {
      const operation = await this.operation(operationId);
      expect(operation.status, `apply ${line}`).toBe('succeeded');
      expect(
        this.linesOf(name).filter((one) => one === line),
        `what ${name} did`,
      ).toEqual([line]);
    }
    for (const name of NAMES) {
      const lines = this.linesOf(name);
      expect(lines, `what ${name} did`).toEqual([...new Set(lines)]);
    }
    expect(await this.world.gives('verifyAudit', {}, 200)).toMatchObject({ intact: true });
    // The program and the links of the agents outlive the database.
    expect(this.world.server.process.exitCode).toBe(null);
    expect(this.world.ready.pid).toBe(this.pid);
    for (const agent of await this.agents()) {
      expect([agent.name, agent.connected, agent.connected_at]).toEqual([
        agent.name,
        true,
        this.connectedAt.get(agent.node_id),
      ]);
    }
  }

  private next(): number {
    this.count += 1;
    return this.count;
  }

  private async agents(): Promise<readonly Agent[]> {
    return this.world.gives('listAgents', {}, 200);
  }

  private setTag(key: string, value: string, name: string) {
    const node_id = this.nodes.get(name) ?? '';
    return this.world.call('setTag', { params: { node_id, key }, body: { value } });
  }

  /** Waits until writes are accepted. */
  private async writable(): Promise<void> {
    await until(async () => (await this.refusal()) === null, 'a write is accepted');
  }

  /** Sets a new tag of an agent again and again; slowly, because an agent has at most 256 of them. */
  private async tagging(name: string, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const key = `${name}-${this.next()}`;
      const answer = await this.setTag(key, key, name);
      if (answer.status === 204) this.tags.set(key, key);
      else expect([answer.status, answer.json?.code]).toEqual([503, 'store_unavailable']);
      await sleep(200);
    }
  }

  /** Applies a script that leaves a new line each time, and waits for its end. */
  private async applying(name: string, signal: AbortSignal): Promise<void> {
    const node_id = this.nodes.get(name) ?? '';
    while (!signal.aborted) {
      const line = `${name}-${this.next()}`;
      const apply = `sleep 0.3; echo ${line} >> ${this.file(name)}`;
      const content = [
        `name: step-${name}`,
        'supports: [{platform: linux}]',
        'resources:',
        `  - resource: {script: {program: sh, apply: ${JSON.stringify(apply)}}}`,
        '    id: leave-a-line',
        '',
      ].join('\n');
      const uploaded = await this.world.call('uploadModule', { body: { name: `step-${name}`, content } });
      if (uploaded.status !== 201) {
        await sleep(100);
        continue;
      }
      const body = { modules: [`step-${name}`], wait: false, allow_removals: 9 };
      const begun = await this.world.call('applyAgent', { params: { node_id }, body });
      if (begun.status !== 202) {
        await sleep(100);
        continue;
      }
      const operationId = begun.json.operation_id;
      this.applies.set(operationId, { name, line });
      await until(async () => this.hasEnded(operationId), `apply ${line} ends`);
    }
  }

  private async hasEnded(operationId: string): Promise<boolean> {
    const answer = await this.world.call('getOperation', { params: { operation_id: operationId } });
    return answer.status === 200 && !['queued', 'running'].includes(answer.json.status);
  }

  private operation(operationId: string): Promise<OperationDetail> {
    return this.world.gives('getOperation', { params: { operation_id: operationId } }, 200);
  }

  /** Waits until no operation is under way. */
  private async settled(): Promise<void> {
    await until(async () => {
      const { operations } = await this.world.gives('listOperations', { query: { limit: '500' } }, 200);
      return operations.every(({ status }: OperationDetail) => !['queued', 'running'].includes(status));
    }, 'every operation has its end');
  }

  private file(name: string): string {
    return join(this.world.sandbox.root, `${name}.lines`);
  }

  private linesOf(name: string): readonly string[] {
    const file = this.file(name);
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
  }
}
