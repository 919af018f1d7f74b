/** Health checks of the agent's engine: after an apply, in the journal, and alone. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Engine } from '../../../src/agent/engine/engine.js';
import { UnixHost } from '../../../src/agent/host/this-host.js';
import { Journal } from '../../../src/agent/journal.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import type { DesiredCheck } from '../../../src/resources/checks/check.js';
import type { RunContent } from '../../../src/wire/parts.js';
import { clock, content, file, head, Listener, place, runId, script, summaryOf } from '../../support/agent.js';
import { until } from '../../support/until.js';

function start(dataDir: string) {
  const journal = new Journal(dataDir);
  const createHost = (signal?: AbortSignal) => new UnixHost({ platform: 'linux', dataDir, signal });
  const engine = new Engine({ journal, createHost, clock, logger: silentLogger });
  onTestFinished(() => engine.stop());
  return { engine, journal, heard: new Listener(engine) };
}

const check = (run: string, more: Partial<DesiredCheck> = {}): DesiredCheck => ({
  module: 'web',
  name: 'ready',
  kind: 'script',
  within_secs: 1,
  timeout_secs: 1,
  body: { program: 'sh', run },
  ...more,
});

const withChecks = (run: RunContent, ...verify: readonly DesiredCheck[]): RunContent => ({ ...run, verify });

describe('an apply with health checks', () => {
  it('runs them last, and succeeds with healthy ones', async () => {
    const root = place();
    const { engine, heard } = start(place());
    engine.begin(head(1), withChecks(content([file(join(root, 'f'))]), check(`test -e ${join(root, 'f')}`)));
    expect(await heard.finished(1)).toMatchObject({
      end: 'succeeded',
      results: 1,
      error: null,
      checks: [{ index: 0, status: 'healthy', reason: null }],
    });
  });

  it('fails with an unhealthy one, and tells that again after a restart until it is acknowledged', async () => {
    const [dataDir, root] = [place(), place()];
    const first = start(dataDir);
    first.engine.begin(head(1), withChecks(content([file(join(root, 'f'))]), check('echo broken; exit 1')));
    const end = {
      end: 'failed',
      results: 1,
      error: {
        code: 'verify_failed',
        message: expect.stringContaining('check "ready" of module web failed: ended with status 1: broken'),
      },
      checks: [{ index: 0, status: 'unhealthy', reason: expect.stringContaining('broken') }],
    };
    expect(await first.heard.finished(1)).toMatchObject(end);
    await first.engine.stop();
    const { engine, heard, journal } = start(dataDir);
    await engine.inventory();
    engine.resume(runId(1), 0);
    expect(await heard.finished(1)).toMatchObject(end);
    engine.acknowledge(runId(1));
    expect(journal.runs).toEqual([]);
  });

  it('runs those of the modules in which nothing failed', async () => {
    const root = place();
    const broken = { ...script('broken', { apply: 'exit 1' }), module: 'shop' };
    const run = withChecks(
      content([broken, file(join(root, 'f'))]),
      check(`touch ${join(root, 'ran')}`, { module: 'shop' }),
      check(`test -e ${join(root, 'f')}`),
      check('echo broken; exit 1', { name: 'bad' }),
    );
    const { engine, heard } = start(place());
    engine.begin(head(1), run);
    expect(await heard.finished(1)).toMatchObject({
      end: 'failed',
      error: null,
      checks: [
        { index: 0, status: 'not_run', reason: 'a resource of its module failed or was skipped' },
        { index: 1, status: 'healthy' },
        { index: 2, status: 'unhealthy', reason: expect.stringContaining('broken') },
      ],
    });
    expect(existsSync(join(root, 'ran'))).toBe(false);
  });

  it('does not run them after a failed apply', async () => {
    const root = place();
    const ran = join(root, 'ran');
    const { engine, heard } = start(place());
    const broken = content([script('broken', { apply: 'exit 1' })]);
    engine.begin(head(1), withChecks(broken, check(`touch ${ran}`, { module: 'site' })));
    const end = await heard.finished(1);
    expect(end).toMatchObject({ end: 'failed', error: null });
    expect(end).not.toHaveProperty('checks');
    expect(existsSync(ran)).toBe(false);
  });

  it('ends them at once when it is cancelled, with all results of resources', async () => {
    const root = place();
    const begun = join(root, 'begun');
    const { engine, heard } = start(place());
    const endless = check(`touch ${begun}; sleep 1000`, { within_secs: 900, timeout_secs: 900 });
    engine.begin(head(1), withChecks(content([file(join(root, 'f'))]), endless));
    await until(() => existsSync(begun), 'the check has begun');
    expect(summaryOf(heard.items(1))).toEqual(['f create changed']);
    engine.cancel(runId(1));
    expect(await heard.finished(1)).toMatchObject({ end: 'cancelled', error: null, checks: [{ status: 'not_run' }] });
  });

  it('ends them at once when the agent stops, and says that they did not end', async () => {
    const [dataDir, root] = [place(), place()];
    const begun = join(root, 'begun');
    const { engine, heard } = start(dataDir);
    const endless = check(`touch ${begun}; sleep 1000`, { within_secs: 900, timeout_secs: 900 });
    engine.begin(head(1), withChecks(content([file(join(root, 'f'))]), endless));
    await until(() => existsSync(begun), 'the check has begun');
    await engine.stop();
    expect(await heard.finished(1)).toMatchObject({
      end: 'interrupted',
      error: { code: 'interrupted', message: 'the agent was stopped before its health checks had ended' },
    });
  });

  it('whose agent went down before they ended is interrupted, and does not run them later', async () => {
    const [dataDir, root] = [place(), place()];
    const ran = join(root, 'ran');
    const journal = new Journal(dataDir);
    const wanted = withChecks(content([file(join(root, 'f'))]), check(`touch ${ran}`));
    journal.accept({ id: runId(1), epoch: 1, generation: 1, content: wanted });
    journal.close();
    const { engine, heard } = start(dataDir);
    await engine.inventory();
    engine.resume(runId(1), 0);
    expect(await heard.finished(1)).toMatchObject({
      end: 'interrupted',
      error: {
        message: 'the agent went down in the middle of it; its health checks did not run to the end',
      },
    });
    expect(existsSync(ran)).toBe(false);
  });

  it('sees what scripts of the apply left running', async () => {
    const root = place();
    const ready = join(root, 'ready');
    const { engine, heard } = start(place());
    const service = script('service', { apply: `(sleep 0.3; touch ${ready}) >/dev/null 2>&1 &` });
    engine.begin(head(1), withChecks(content([service]), check(`test -e ${ready}`, { within_secs: 60 })));
    expect(await heard.finished(1)).toMatchObject({ end: 'succeeded', checks: [{ status: 'healthy' }] });
  });
});

describe('health checks alone', () => {
  const nothing = content([]);

  it('run without an apply, and leave no trace in the journal', async () => {
    const dataDir = place();
    const { engine, heard } = start(dataDir);
    const state = join(place(), 'state');
    engine.begin(head(1, { mode: 'verify', generation: 0 }), withChecks(nothing, check(`test -e ${state}`)));
    expect(await heard.finished(1)).toMatchObject({ end: 'failed', error: { code: 'verify_failed' }, results: 0 });
    writeFileSync(state, '');
    engine.begin(head(2, { mode: 'verify', generation: 0 }), withChecks(nothing, check(`test -e ${state}`)));
    expect(await heard.finished(2)).toMatchObject({ end: 'succeeded', error: null, checks: [{ status: 'healthy' }] });
    expect(await engine.inventory()).toEqual([]);
    expect(readFileSync(join(dataDir, 'journal'), 'latin1')).not.toContain('ready');
  });

  it('make way for an apply, and do not run beside one', async () => {
    const root = place();
    const begun = join(root, 'begun');
    const { engine, heard } = start(place());
    const endless = check(`touch ${begun}; sleep 1000`, { within_secs: 900, timeout_secs: 900 });
    engine.begin(head(1, { mode: 'verify', generation: 0 }), withChecks(nothing, endless));
    await until(() => existsSync(begun), 'the check has begun');
    engine.begin(head(2), content([file(join(root, 'f'))]));
    engine.begin(head(3, { mode: 'verify', generation: 0 }), withChecks(nothing, check('exit 0')));
    expect(await heard.finished(3)).toMatchObject({ end: 'refused', error: { code: 'operation_in_progress' } });
    expect(await heard.finished(1)).toMatchObject({ end: 'cancelled', checks: [{ status: 'not_run' }] });
    expect(await heard.finished(2)).toMatchObject({ end: 'succeeded' });
  });

  it('end with the connection', async () => {
    const begun = join(place(), 'begun');
    const { engine, heard } = start(place());
    const endless = check(`touch ${begun}; sleep 1000`, { within_secs: 900, timeout_secs: 900 });
    engine.begin(head(1, { mode: 'verify', generation: 0 }), withChecks(nothing, endless));
    await until(() => existsSync(begun), 'the check has begun');
    engine.disconnected();
    expect(await heard.finished(1)).toMatchObject({ end: 'cancelled' });
  });
});
