/** Runs as an orchestrator sends them. */
import type { DesiredResource, Removal } from '../../../src/resources/desired.js';
import type { RunItem } from '../../../src/wire/messages.js';
import type { RunContent } from '../../../src/wire/parts.js';

type Extra = Partial<Omit<DesiredResource, 'body'>>;

export const file = (
  path: string,
  body: Record<string, unknown> = { content: 'x' },
  extra: Extra = {},
): DesiredResource => ({
  module: 'site',
  kind: 'file-unix',
  identity: path,
  id: null,
  name: null,
  body: { path, ...body },
  after: [],
  ...extra,
});

export const directory = (path: string, body: Record<string, unknown> = {}, extra: Extra = {}): DesiredResource => ({
  ...file(path, body, extra),
  kind: 'directory-unix',
});

export const removal = (
  { module, kind, identity, body }: DesiredResource,
  origin: Removal['origin'] = 'created',
): Removal => ({ module, kind, identity, id: null, name: null, body, origin });

export const content = (resources: readonly DesiredResource[], removals: readonly Removal[] = []): RunContent => ({
  resources,
  removals,
});

/** `identity: action status code`, in the order of the run. */
export const summaryOf = (items: readonly RunItem[]): readonly string[] =>
  [...items]
    .sort((a, b) => a.index - b.index)
    .map(({ result: { identity, action, status, error } }) =>
      [identity.split('/').pop(), action, status, error?.code].filter((word) => word !== undefined).join(' '),
    );

/** The result at a place of the run. */
export function resultAt(items: readonly RunItem[], index: number): RunItem['result'] {
  const found = items.find((item) => item.index === index);
  if (!found) throw new Error(`no result of item ${index}`);
  return found.result;
}

/** A script told apart by `manages`; `triggers` names positions of the run. */
export const script = (
  identity: string,
  body: Record<string, unknown>,
  extra: Extra & { readonly triggers?: Record<string, number[]> } = {},
): DesiredResource => ({
  module: 'site',
  kind: 'script',
  identity,
  id: null,
  name: null,
  body: { program: 'sh', manages: identity, ...body },
  after: Object.values(extra.triggers ?? {}).flat(),
  ...extra,
});
