/** How it is told what put a resource on an agent. */
import type { State } from '../../contract/operations.js';
import { showClause } from '../../language/clause.js';
import type { DeclaredVariant } from '../../language/declarations.js';
import { formatTime } from '../format.js';
import { fieldsOf, headed, type Line, stackOf, styled, type View } from '../view.js';

/** Where a module declares a resource. */
export interface DeclaredPlace {
  readonly module: string;
  readonly revision: number;
  /** JSON pointer in the module. */
  readonly path: string;
  readonly line: number;
  readonly column: number;
  readonly id: string | null;
  readonly name: string | null;
  readonly variant: DeclaredVariant | null;
}

export interface Explanation {
  readonly kind: string;
  readonly identity: string;
  /** Several when modules declare it alike. */
  readonly declared: readonly DeclaredPlace[];
  /** Those that match the agent now and name such a module; none when a request or an assignment of another time named it. */
  readonly assignments: readonly string[];
  /** What orch believes to have put there; null when it never did. */
  readonly applied: State['applied'][number] | null;
}

export const explanationView = (agent: string, all: readonly Explanation[]): View =>
  stackOf(
    all.map((one) =>
      headed(
        `${one.kind} ${one.identity} on ${agent}`,
        fieldsOf([...one.declared.flatMap(placeRows), ...stateRows(one)]),
      ),
    ),
  );

type Row = readonly [string, Line];

function placeRows({ module, revision, line, column, id, name, variant }: DeclaredPlace): readonly Row[] {
  const label = id ?? name;
  return [
    ['Declared by', `${module}:${line}:${column}${label === null ? '' : `, resource "${label}"`}`],
    ['Revision', `${revision} (orch module show ${module} --revision ${revision})`],
    ...(variant === null
      ? []
      : [['Variant', `${variant.number} of ${variant.of}: ${showClause(variant.when)}`] as Row]),
  ];
}

function stateRows({ declared, assignments, applied }: Explanation): readonly Row[] {
  const named: readonly Row[] = [['Assigned by', assignments.length === 0 ? NO_ASSIGNMENT : assignments.join(', ')]];
  if (applied === null) return [...named, ['Applied', styled('warn', 'never; the next apply creates or adopts it')]];
  const by: Row = ['Applied', `${formatTime(applied.applied_at)} by operation ${applied.operation_id}`];
  if (declared.length > 0) return [...named, by, ['Origin', ORIGINS[applied.origin]]];
  const fate = applied.origin === 'created' ? 'removes' : 'releases';
  const gone = `no current module declares it for this agent (last: ${applied.module}); the next apply ${fate} it`;
  return [['Declared by', styled('warn', gone)], ...named, by, ['Origin', ORIGINS[applied.origin]]];
}

const NO_ASSIGNMENT = 'no assignment that matches the agent now';

const ORIGINS: Readonly<Record<State['applied'][number]['origin'], string>> = {
  created: 'orch created it, and removes it when it is no longer desired',
  adopted: 'it was there before, and is released when it is no longer desired',
};
