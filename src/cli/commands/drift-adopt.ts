/** `orch drift adopt`: a patch of the modules that declares what a machine has. */

import { isAbsolute, relative, resolve } from 'node:path';
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import type { DriftResource } from '../../contract/runs.js';
import { Fault } from '../../kernel/fault.js';
import { declarations } from '../../language/declarations.js';
import type { AgentFacts } from '../../language/evaluate.js';
import type { GivenValues } from '../../language/inputs/choose.js';
import type { Context } from '../context.js';
import { argumentList, defineCommand } from '../define-command.js';
import { EXIT } from '../exit-status.js';
import { agentHandle, count } from '../format.js';
import { unknownSecrets } from '../modules/check-together.js';
import { ENDING, readModuleFiles } from '../modules/find-modules.js';
import {
  matchingAssignments,
  prepareFile,
  type ReadModule,
  requireValid,
  storedModules,
} from '../modules/read-modules.js';
import { storedSets, valuesOf } from '../modules/stored-values.js';
import { factsOfAgents } from '../nodes/agent-facts.js';
import { chooseResources } from '../nodes/choose-resources.js';
import { nodeArgument, resolveNode } from '../nodes/resolve-node.js';
import { list } from '../options.js';
import { linesOf } from '../outcome.js';
import { resourceName } from '../render/plan-lines.js';
import { textDiff, textDiffLines } from '../render/text-diff.js';

export const adoptDrift = defineCommand({
  examples: [
    'orch drift adopt web-01 /etc/motd -f modules | git apply',
    'orch drift adopt web-01 /etc/motd /srv/site > motd.patch',
  ],
  detail: [
    'Apply the patch with patch -p1 or git apply; comments and formatting stay. Without -f it is a diff of the stored',
    'modules.',
    'Paths are below the working directory, or below / for files elsewhere.',
    'What comes from a template, an expression or a secret is not changed: a warning names it and what to do.',
    'A changed module changes every agent that has it: see orch impact.',
  ],
  access: 'operator',
  args: {
    node: nodeArgument,
    resources: argumentList('RESOURCE', 'identity, ID, or "KIND IDENTITY" of a resource'),
  },
  options: { file: list('FILE', 'a module file, or a directory of them', { short: 'f', completes: 'file' }) },
  run: async (context, { node, resources: words, file }) => {
    const { signal } = context;
    const files = file.length === 0 ? null : sourcesOf(file);
    const api = await context.api();
    const agent = await resolveNode(api, node, { signal });
    const record = await api.call('checkDrift', { params: { node_id: agent.node_id }, signal });
    const different = record.resources.filter(({ status }) => status === 'pending');
    const hint = `see what has drifted: orch drift latest ${agentHandle(agent)}`;
    const chosen = chooseResources(words, different, { agent, what: 'drifted', hint });
    const sources = files ?? (await storedSources(context, api, chosen));
    const modules = sources.map(({ module }) => module);
    const [facts] = await factsOfAgents(api, [agent], { modules, signal });
    const assignments = matchingAssignments(await api.call('listAssignments', { signal }), agent);
    const values = valuesOf(await storedSets(api, signal), assignments);
    const { patches, byHand } = await adoptAll({
      agent,
      values,
      facts: facts ?? { ...agent, name: agent.name ?? '' },
      chosen,
      sources,
    });
    for (const { resource, why } of byHand) context.warn(`${resourceName(resource)} is to be adopted by hand: ${why}`);
    if (files === null && patches.length > 0) {
      context.note('The patch is of the stored modules; of your files with: -f FILE');
    }
    const patch = patches.map(({ patch: text }) => text).join('');
    const { stdout } = context.streams;
    // A terminal gets tabs and control characters in a harmless form, with which the patch would not apply.
    const isPiped = stdout.isTTY !== true && ['table', 'wide'].includes(context.globals.output);
    if (isPiped) stdout.write(patch);
    return {
      body: {
        patches,
        by_hand: byHand.map(({ resource: { module, kind, identity }, why }) => ({ module, kind, identity, why })),
      },
      names: patches.map(({ path }) => path),
      view: linesOf(isPiped ? [] : textDiffLines(patch)),
      exitStatus: byHand.length === 0 ? EXIT.done : EXIT.partlyFailed,
    };
  },
});

/** A module with its text. */
interface Source {
  readonly module: ReadModule;
  /** Path for the header of the patch. */
  readonly path: string;
  readonly text: string;
}

function sourcesOf(paths: readonly string[]): readonly Source[] {
  return requireValid(readModuleFiles(paths)).map((file) => ({
    module: prepareFile(file),
    path: pathInPatch(file.path),
    text: file.source,
  }));
}

/** Returns the path below the working directory; of a file elsewhere, the path below the root. */
function pathInPatch(path: string): string {
  const below = relative('.', path);
  return below.startsWith('..') || isAbsolute(below) ? resolve(path).replace(/^\/+/, '') : below;
}

async function storedSources(
  { signal }: Context,
  api: ApiClient,
  chosen: readonly DriftResource[],
): Promise<readonly Source[]> {
  const modules = await storedModules(
    api,
    chosen.map(({ module }) => module),
    signal,
  );
  const sources: Source[] = [];
  for (const module of modules) {
    const query = { revision: module.revision };
    const { content } = await api.call('getModule', { params: { name: module.name }, query, signal });
    sources.push({ module, path: `${module.name}${ENDING}`, text: content });
  }
  return sources;
}

interface Adoption {
  readonly agent: Agent;
  readonly facts: AgentFacts;
  /** Values of inputs that concern the agent. */
  readonly values: GivenValues;
  readonly chosen: readonly DriftResource[];
  readonly sources: readonly Source[];
}

interface ByHand {
  readonly resource: DriftResource;
  readonly why: string;
}

interface Adopted {
  readonly patches: readonly { readonly module: string; readonly path: string; readonly patch: string }[];
  readonly byHand: readonly ByHand[];
}

/** Edits the modules, one resource after another. */
async function adoptAll({ agent, facts, values, chosen, sources }: Adoption): Promise<Adopted> {
  const { adoptResource } = await import('../modules/adopt-resource.js');
  const { declared } = declarations({
    modules: sources.map(({ module }) => module.compiled),
    agent: facts,
    secret: unknownSecrets,
    values,
  });
  const texts = new Map(sources.map(({ module, text }) => [module.name, text]));
  const byHand: ByHand[] = [];
  for (const resource of chosen) {
    const { kind, identity } = resource;
    const places = declared.filter((one) => one.kind === kind && one.identity === identity);
    if (places.length === 0) {
      byHand.push({
        resource,
        why: `no ${texts.has(resource.module) ? 'resource of' : 'file with'} module ${resource.module} declares it for this agent`,
      });
    }
    for (const { module, ...place } of places) {
      const text = texts.get(module) ?? '';
      const edited = adoptResource(text, place, resource);
      if ('text' in edited) texts.set(module, edited.text);
      else byHand.push({ resource, why: edited.why });
    }
  }
  const patches = sources.flatMap(({ module, path, text }) => {
    const after = texts.get(module.name) ?? text;
    const patch = textDiff({ label: `a/${path}`, text }, { label: `b/${path}`, text: after });
    return patch === '' ? [] : [{ module: module.name, path, patch }];
  });
  if (patches.length === 0 && byHand.length === 0) {
    throw new Fault(
      'drift_unacceptable',
      `the modules declare ${count(chosen.length, 'resource')} as they are already`,
      {
        hint: `apply them: orch apply ${agentHandle(agent)}`,
      },
    );
  }
  return { patches, byHand };
}
