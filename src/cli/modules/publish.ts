/** Publishes modules: shows whom they reach, asks, and stores them as new revisions. */
import type { ApiClient } from '../../client/api-client.js';
import { NO_REVISION } from '../../contract/run-targets.js';
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { agentName } from '../format.js';
import { resolveNode } from '../nodes/resolve-node.js';
import { consentToReach, type Reach, reachOf } from './reach.js';
import { type NamedFile, type Uploaded, uploadFile } from './send-modules.js';

interface PublishOptions {
  /** True with `--allow-automatic-applies`. */
  readonly isAllowed: boolean;
}

/**
 * Publishes modules after the consent. A text without `replaces` replaces what is current now, which is what its reach was shown
 * for. Returns null, without a change, for a no.
 */
export async function publishModules(
  context: Context,
  api: ApiClient,
  files: readonly NamedFile[],
  { isAllowed }: PublishOptions,
): Promise<readonly Uploaded[] | null> {
  const reaches = new Map<string, Reach>();
  for (const file of files) reaches.set(file.name, await reachOf(context, api, file));
  const changed = [...reaches.values()].filter(({ sha256, current }) => sha256 !== current);
  const names = changed.map(({ name }) => name).join(', ');
  const question = `Publish ${changed.length === 1 ? 'module' : 'modules'} ${names}?`;
  if (changed.length > 0 && !(await consentToReach(context, changed, { isAllowed, question }))) return null;
  const uploaded: Uploaded[] = [];
  for (const file of files) {
    const current = reaches.get(file.name)?.current ?? '';
    uploaded.push(await uploadFile(context, api, { ...file, replaces: file.replaces ?? current }));
  }
  return uploaded;
}

/**
 * Returns the texts that an agent has on trial, all or those of the named modules. On a terminal the operator sees whether a
 * newer revision is current; otherwise only the revision that the trial was made from is replaced. Throws `usage`.
 */
export async function triedFiles(
  context: Context,
  api: ApiClient,
  { node, modules }: { readonly node: string; readonly modules: readonly string[] },
): Promise<readonly NamedFile[]> {
  const { signal, globals, prompt } = context;
  const agent = await resolveNode(api, node, { signal });
  const trial = await api.call('getTrial', { params: { node_id: agent.node_id }, signal });
  const missing = modules.find((name) => !trial.modules.some(({ module }) => module === name));
  const tried = trial.modules.map(({ module }) => module).join(', ');
  if (trial.modules.length === 0 || missing !== undefined) {
    const what = missing === undefined ? 'nothing' : `no module ${missing}`;
    throw new Fault('usage', `${agentName(agent)} has ${what} on trial`, {
      hint: tried === '' ? 'see what is: orch agents list --status on_trial' : `it has on trial: ${tried}`,
    });
  }
  const chosen = trial.modules.filter(({ module }) => modules.length === 0 || modules.includes(module));
  const files: NamedFile[] = [];
  for (const { module: name, content: source, files: beside, replaces } of chosen) {
    const file = { name, source, files: beside, path: `the trial of ${agentName(agent)}` };
    const base = replaces ?? NO_REVISION;
    const { current, sha256 } = await reachOf(context, api, file);
    if (current !== base && current !== sha256) {
      context.warn(`module ${name} has changed on the orchestrator since the trial began: publishing replaces that`);
    }
    const asks = prompt.possible && !globals.yes;
    files.push(asks ? file : { ...file, replaces: base });
  }
  return files;
}
