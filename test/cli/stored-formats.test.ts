/** Files that commands write and later releases read: saved plans, and what `--local` has applied. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BelievedState } from '../../src/cli/local/believed-state-schema.js';
import { loadState, saveState } from '../../src/cli/local/local-state.js';
import { RunResultSchema } from '../../src/contract/runs.js';
import { Home, runOrch } from '../support/cli.js';
import {
  applied,
  appliedStream,
  planned,
  readings,
  reported,
  runResult,
  streamed,
  ulid,
  web1,
  web2,
} from '../support/cli-world.js';
import { loggedIn, startFakeApi } from '../support/fake-api.js';
import { type Complete, describeReleased } from '../support/released.js';

const one: Complete<BelievedState['applied'][number]> = {
  module: 'site',
  kind: 'file-unix',
  identity: '/etc/motd',
  id: 'motd',
  name: 'the message of the day',
  body: { path: '/etc/motd', content: '********' },
  taint: { '/content': [{ start: 0, end: 8, secret: 'TOKEN', tag: 'ab12' }] },
  origin: 'created',
  operation_id: ulid(1),
  listeners: [{ module: 'site', kind: 'service-systemd', identity: 'nginx', field: 'reload_on' }],
};
const believed: Complete<BelievedState> = {
  version: 1,
  mask_key: '5a'.repeat(32),
  operation_id: ulid(1),
  applied: [one, { ...one, identity: '/etc/other', origin: 'adopted' }],
};

const SITE = 'name: site\nsupports: [{platform: linux}]\nresources: []\n';
const URL = 'https://orch.example:8443';

/** The body of an apply over named agents. */
interface SentApply {
  readonly agents: readonly string[];
  readonly expect: Readonly<Record<string, string>>;
  readonly modules: readonly string[];
  readonly allow_removals: number | null;
  readonly sources?: readonly { readonly name: string; readonly content: string }[];
  readonly values?: unknown;
}

/** Runs `orch` against an orchestrator of the test; its requests with their bodies. */
async function orchestrated(argv: readonly string[], home: Home): Promise<readonly unknown[]> {
  const sent: unknown[] = [];
  const api = await startFakeApi({ ...readings, listAssignments: { body: [] } });
  try {
    api.answer({
      listModuleRevisions: { problem: 'module_not_found', detail: 'there is no such module' },
      planRollout: streamed(
        [web1, web2].map((agent) => reported(agent, runResult(planned, { plan_hash: 'c'.repeat(64) }))),
      ),
      applyRollout: ({ body }) => {
        const { agents, expect, modules, allow_removals, sources = [], values } = body as SentApply;
        if (values !== undefined) sent.push({ values });
        for (const { name, content } of sources) sent.push({ uploaded: { name, content } });
        for (const node_id of agents)
          sent.push({ node_id, body: { expect: expect[node_id], modules, allow_removals } });
        return appliedStream(
          [web1, web2].map((agent) => reported(agent, runResult(applied, { operation_id: ulid(1) }))),
        );
      },
    });
    const { status, stderr } = await runOrch(argv, { env: { ...loggedIn(api), ...home.env, NO_COLOR: '1' } });
    if (status !== 0) throw new Error(`orch ${argv.join(' ')} ended with ${status}:\n${stderr}`);
    const [file = ''] = argv.filter((word) => word.endsWith('.orchplan'));
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(api.url, URL), { mode: 0o600 });
  } finally {
    await api.stop();
  }
  return sent;
}

async function withHome<T>(work: (home: Home) => Promise<T>): Promise<T> {
  const home = new Home();
  try {
    return await work(home);
  } finally {
    home.dispose();
  }
}

describeReleased(import.meta.url, [
  {
    name: 'saved-plan',
    // Revision 1 is version 1 of the format, without sources. Revision 3 adds operations to go back to, and 5 values.
    revision: 5,
    version: 'VERSION in src/cli/runs/saved-plan.ts',
    shapes: { result: RunResultSchema },
    write: (directory) =>
      withHome(async (home) => {
        const module = home.file('site.orch.yaml');
        writeFileSync(module, SITE);
        const file = join(directory, 'next.orchplan');
        const values = ['--set', 'site:workers=8'];
        await orchestrated(['plan', 'web-01', 'web-02', '-f', module, ...values, '--out', file], home);
        writeFileSync(file, readFileSync(file, 'utf8').replaceAll(home.path, '~'), { mode: 0o600 });
      }),
    read: (directory) => withHome((home) => orchestrated(['apply', join(directory, 'next.orchplan'), '--yes'], home)),
  },
  {
    name: 'local-state',
    // Revision 2 adds listeners.
    revision: 2,
    version: 'version in src/cli/local/local-state.ts',
    write: (directory) => saveState(directory, believed),
    read: loadState,
  },
]);
