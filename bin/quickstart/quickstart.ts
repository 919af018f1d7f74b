/** `orch quickstart`: the main job on this machine, step by step, with the real programs and commands. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Fault } from '../../src/kernel/fault.js';
import type { QuickstartFlags } from '../../src/programs/programs.js';
import { Stage } from './stage.js';

const NODE = 'this-machine';

/**
 * Runs the tour below one new directory and touches nothing else.
 * @returns 0 after all steps, 130 after an interrupt
 */
export async function quickstart(flags: QuickstartFlags): Promise<number> {
  const directory = newDirectory(flags.dir);
  const stage = new Stage({ directory, color: flags.color, out: process.stdout });
  const interrupted = stage.untilInterrupted();
  try {
    const tour = run(stage, directory, flags.keep).then(() => 0);
    const status = await Promise.race([tour, interrupted]);
    if (status !== 0 || !flags.keep) return status;
    stage.say('It stays up. Press Ctrl-C to stop the orchestrator and the agent.');
    await Promise.race([interrupted, stage.programEnded()]);
    return 0;
  } finally {
    await stage.close();
  }
}

function newDirectory(given: string | undefined): string {
  if (given === undefined) return mkdtempSync(join(tmpdir(), 'orch-quickstart-'));
  const directory = resolve(given);
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    throw new Fault('usage', `cannot make the new directory ${directory}`, {
      cause: error,
      hint: 'name one that does not exist yet, in a directory that does',
    });
  }
  return directory;
}

async function run(stage: Stage, directory: string, keep: boolean): Promise<void> {
  const site = join(directory, 'site');
  const motd = join(site, 'motd');
  const module = join(directory, 'hello.orch.yaml');

  stage.title('A key for you, the operator');
  await stage.orch('operator', 'init');

  stage.title('The orchestrator, with its data below the same directory');
  const ready = await stage.startServe();

  stage.title('A profile that remembers where it is and which certificate it has');
  const { api_url: url, tls_fingerprint: fingerprint } = ready;
  await stage.orch('profile', 'create', 'quickstart', '--url', url, '--tls-fingerprint', fingerprint);
  await stage.orch('status');

  stage.title('An agent on this machine, with the key of its orchestrator');
  await stage.startAgent(ready);
  const node = await stage.pendingAgent();
  await stage.orch('agents', 'list');

  stage.title('An agent gets nothing before an operator approves it');
  await stage.orch('agents', 'approve', node, '--name', NODE, '--yes');
  await stage.orch('agents', 'tag', NODE, 'role=demo');
  await stage.connectedAgent(NODE);

  stage.title('A module says how things should be');
  writeFileSync(module, demoModule(site));
  stage.file(module);
  await stage.orch('module', 'publish', module);

  stage.title('A plan shows what would change, and changes nothing');
  await stage.orch('plan', NODE, '-m', 'hello');

  stage.title('An apply does it');
  await stage.orch('apply', NODE, '-m', 'hello', '--yes');

  stage.title('A person changes a file by hand …');
  stage.shell(`echo 'changed by hand' >> ${motd}`, () => writeFileSync(motd, 'changed by hand\n', { flag: 'a' }));

  stage.title('… which is drift');
  await stage.orch('drift', NODE);

  stage.title('The same apply repairs it, and then there is nothing to do');
  await stage.orch('apply', NODE, '-m', 'hello', '--yes');
  await stage.orch('drift', NODE);

  stage.title('Everything that happened is in the audit log');
  await stage.orch('audit', 'list', '--limit', '8');

  stage.title(keep ? 'Done. Next commands, in another terminal' : 'Done. Next commands');
  stage.next(keep);
}

/** The module of the quickstart: it writes only below one directory. */

/** YAML text; `site` is an absolute path whose parent exists. */
export const demoModule = (site: string): string => `# A module says how things should be; orch makes them so.
name: hello
supports:
  - platform: linux
  - platform: macos
templates:
  - id: motd
    content: |
      This is \${{ agent.name }}, and its role is \${{ tags.role }}.
resources:
  - id: site
    resource:
      directory-unix:
        path: ${JSON.stringify(site)}
        mode: "0755"
  - depends_on: [site]
    resource:
      file-unix:
        path: ${JSON.stringify(`${site}/motd`)}
        template: motd
  - depends_on: [site]
    resource:
      file-unix:
        path: ${JSON.stringify(`${site}/settings.conf`)}
        content: |
          colour = green
          retries = 3
        mode: "0600"
`;
