/** The resources of a run, each with its kind, or with the reason why this machine cannot handle it. */
import type { FaultCode } from '../../kernel/fault.js';
import { validator } from '../../kernel/validator.js';
import { bodyChecks } from '../../resources/body-checks.js';
import { CATALOGUE } from '../../resources/catalogue.js';
import type { DesiredResource, Removal } from '../../resources/desired.js';
import type { Host } from '../../resources/host.js';
import { type Family, MODULE_FAMILIES, type ResourceKind } from '../../resources/kind.js';
import type { RunContent } from '../../wire/parts.js';
import { type Ledger, NO_LEDGER } from './ledger.js';

export interface Refusal {
  readonly code: FaultCode;
  readonly message: string;
}

interface Common {
  /** Position in the run: desired resources first, then removals. */
  readonly index: number;
  /** Ledger key: the same thing on the machine has the same key in every run. */
  readonly key: string;
  /** True when an earlier body held secrets, which may still be on the machine. */
  readonly hadSecrets: boolean;
  /** True when an earlier run began to create it and failed, so that its remains are orch's own. */
  readonly wasBegun: boolean;
}

/** A resource that this machine can handle. */
export interface KnownTarget extends Common {
  readonly kind: ResourceKind;
  readonly refusal: null;
  readonly source: DesiredResource | Removal;
}

interface RefusedTarget extends Common {
  readonly kind: null;
  readonly refusal: Refusal;
  readonly source: DesiredResource | Removal;
}

export type Target = KnownTarget | RefusedTarget;

export const isRemoval = (source: DesiredResource | Removal): source is Removal => 'origin' in source;

/** True for a removal and for an absence. */
export const removesIt = ({ kind, source }: Target): boolean => isRemoval(source) || kind?.absenceOf !== undefined;

/** Returns a map key for an identity within its family. */
export const keyOf = (family: Family, identity: string): string => `${family}\0${identity}`;

function ledgerKey({ kind, identity, module }: DesiredResource | Removal): string {
  const family = CATALOGUE.get(kind)?.family;
  if (family === undefined) return `${kind}\0${identity}`;
  return MODULE_FAMILIES.has(family) ? `${family}\0${identity}\0${module}` : keyOf(family, identity);
}

/** Key of the mark that secrets of a resource may be on the machine. */
export const secretsKey = ({ key }: Pick<Target, 'key'>): string => `secrets\0${key}`;

/** Key of the mark that a creation has begun and not yet succeeded. */
export const begunKey = ({ key }: Pick<Target, 'key'>): string => `begun\0${key}`;

/** Key of the mark that orch made a directory on the way to a resource. */
export const madeKey = (directory: string): string => `made\0${directory}`;
/** Key of the mark of the process that has deferred a restart of its own service until its end. */
export const restartKey = (key: string): string => `restart\0${key}`;

/** Returns the resources in the order of the run. */
export function targetsOf(
  content: RunContent,
  platform: Host['platform'],
  ledger: Ledger = NO_LEDGER,
): readonly Target[] {
  return [...content.resources, ...content.removals].map((source, index) => {
    const key = ledgerKey(source);
    const hadSecrets = ledger.memo(secretsKey({ key })) !== null;
    const wasBegun = ledger.memo(begunKey({ key })) !== null;
    const common = { index, key, hadSecrets, wasBegun, source };
    const kind = CATALOGUE.get(source.kind);
    if (kind === undefined || !kind.platforms.includes(platform)) {
      const why = kind === undefined ? 'does not know' : `cannot apply on ${platform}`;
      const message = `this version of the agent ${why} the kind ${source.kind}`;
      return { ...common, kind: null, refusal: { code: 'unsupported_on_platform', message } };
    }
    const problem = problemOf(source, kind);
    if (problem === null) return { ...common, kind, refusal: null };
    const message = `this version of the agent cannot read the resource: ${problem}`;
    return { ...common, kind: null, refusal: { code: 'invalid_module', message } };
  });
}

/** Returns why a body is invalid here. A newer orchestrator may send unknown members, which are refused, not ignored. */
function problemOf(source: DesiredResource | Removal, kind: ResourceKind): string | null {
  if (bodyChecks[kind.kind]?.check(source.body) !== true) {
    const [problem] = validator(kind.schema).problems(source.body);
    if (problem) return `${problem.path || '/'} ${problem.message}`;
  }
  // A resource that was applied once may be removed even if the rules have changed since.
  const [mistake] = isRemoval(source) ? [] : kind.check(source.body);
  return mistake ? mistake.message : null;
}
