/** Resolves modules for an agent; what fails is told with its lines in the texts of the modules. */
import { Fault, type FaultDetail, isFault } from '../../src/kernel/fault.js';
import type { Position } from '../../src/language/diagnostic.js';
import { type CompiledRequest, type Resolution, resolveSteps } from '../../src/language/resolve.js';
import type { CurrentModule } from './current-modules.js';
import { inSlices } from './slices.js';

/** Where JSON pointers into the definition of a module stand in its text. */
export type Locate = (module: CurrentModule, pointers: readonly string[]) => Promise<ReadonlyMap<string, Position>>;

type Request = Omit<CompiledRequest, 'modules'> & { readonly modules: readonly CurrentModule[] };

/** Throws the faults of `resolve`. */
export async function resolveLocated({ modules, ...rest }: Request, locate: Locate): Promise<Resolution> {
  try {
    return await inSlices(resolveSteps({ ...rest, modules: modules.map(({ compiled }) => compiled) }));
  } catch (error) {
    if (!isFault(error) || mistakesOf(error).length === 0) throw error;
    // Once more, as its messages name places, and texts are looked at only when there is something to tell.
    const located = await withPlaces(modules, mistakesOf(error), locate);
    try {
      return await inSlices(resolveSteps({ ...rest, modules: located.map(({ compiled }) => compiled) }));
    } catch (again) {
      throw isFault(again) ? withLines(again, located) : again;
    }
  }
}

interface Mistake {
  readonly code: string;
  readonly module: string;
  /** JSON pointer. */
  readonly path: string;
}

const mistakesOf = ({ data }: Fault): readonly Mistake[] => (Array.isArray(data?.mistakes) ? data.mistakes : []);

interface Located extends Pick<CurrentModule, 'name' | 'compiled'> {
  readonly positions: ReadonlyMap<string, Position> | null;
}

/** The modules with the places of their resources, as far as a mistake may name them. */
async function withPlaces(
  modules: readonly CurrentModule[],
  mistakes: readonly Mistake[],
  locate: Locate,
): Promise<readonly Located[]> {
  const isConflict = mistakes.some(({ code }) => code === 'module_conflict');
  const located: Located[] = [];
  for (const module of modules) {
    const own = mistakes.filter((mistake) => mistake.module === module.name);
    if (own.length === 0 && !isConflict) {
      located.push({ ...module, positions: null });
      continue;
    }
    const pointers = [...module.compiled.resources.map(({ path }) => path), ...own.map(({ path }) => path)];
    const positions = await locate(module, pointers);
    const placeOf = (pointer: string): string => `line ${positions.get(pointer)?.line ?? 1}`;
    located.push({ name: module.name, compiled: { ...module.compiled, placeOf }, positions });
  }
  return located;
}

function withLines(fault: Fault, modules: readonly Located[]): Fault {
  const { code, message, hint, errors = [], data = {}, cause } = fault;
  const mistakes = mistakesOf(fault);
  const placed = errors.map((error, index): FaultDetail => {
    const module = modules.find(({ name }) => name === mistakes[index]?.module);
    return { ...error, ...module?.positions?.get(error.path) };
  });
  return new Fault(code, message, { ...(hint === undefined ? {} : { hint }), errors: placed, data, cause });
}
