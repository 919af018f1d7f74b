/** Checks templates with an engine against the types of the values that they name, also in branches that no agent takes. */
import {
  certainType,
  insertionProblem,
  loopedType,
  presentFields,
  type Scope,
  typeOfArgument,
  typeProblem,
} from '../expression-types.js';
import { suggestion } from '../nearest.js';
import { quoted } from '../printable.js';
import { BOOLEAN, elementType, type FieldType, NUMBER, nounOf, TEXT, type ValueType } from '../values.js';
import {
  FORLOOP,
  MAX_NESTING,
  type Part,
  type TemplateCall,
  type TemplateLoop,
  type TemplateProblem,
} from './template.js';

/** The templates with an engine of a module, and the ids of the others. */
export interface KnownTemplates {
  readonly rendered: ReadonlyMap<string, readonly Part[]>;
  readonly plain: ReadonlySet<string>;
}

interface TypedProblem extends TemplateProblem {
  /** Id of the template with the mistake. */
  readonly id: string;
}

/** Returns the mistakes of a template in the scope of a resource that uses it. */
export function templateProblems(id: string, known: KnownTemplates, scope: Scope): readonly TypedProblem[] {
  const check = new Check(known);
  check.whole(id, { ...scope, locals: new Map() });
  return check.problems;
}

/** Maximum parts that one use of a template checks, because templates can render others again and again. */
const MAX_PARTS = 100_000;

const certain = (type: ValueType): FieldType => ({ type, optional: false });

/** Type of the place in a loop. */
const PLACE = declared({ index: NUMBER, first: BOOLEAN, last: BOOLEAN, length: NUMBER });

function declared(types: Readonly<Record<string, ValueType>>): ValueType {
  const fields = Object.entries(types).map(([name, type]): [string, FieldType] => [name, certain(type)]);
  return { type: 'map', fields: new Map(fields), of: null, isDeclared: true };
}

/** A parameter would lose that the fact has to be checked for each agent. */
const OWN_FACT = 'a fact of your own cannot be a parameter; name it in the template that is rendered';

class Check {
  readonly problems: TypedProblem[] = [];
  private readonly known: KnownTemplates;
  /** Ids of the templates around, the innermost last. */
  private readonly around: string[] = [];
  private readonly reported = new Set<string>();
  private count = 0;

  constructor(known: KnownTemplates) {
    this.known = known;
  }

  whole(id: string, scope: Scope): void {
    this.around.push(id);
    this.all(this.known.rendered.get(id) ?? [], scope);
    this.around.pop();
  }

  private all(parts: readonly Part[], scope: Scope): void {
    for (const part of parts) {
      this.count += 1;
      if (this.count > MAX_PARTS) return;
      if (part.type === 'print') this.report(part.offset, insertionProblem(part.expression, scope, false));
      else if (part.type === 'if') this.branches(part, scope);
      else if (part.type === 'for') this.loop(part, scope);
      else if (part.type === 'render') this.call(part, scope);
      if (this.count > MAX_PARTS && part.type === 'render') {
        this.report(part.offset, 'the templates that this renders, and those that they render, are too many');
        return;
      }
    }
  }

  private branches({ branches, otherwise }: Extract<Part, { readonly type: 'if' }>, scope: Scope): void {
    // Below a branch, the conditions before it did not hold.
    let inner = scope;
    for (const { offset, condition, parts } of branches) {
      this.report(offset, typeProblem(condition, inner));
      this.all(parts, withPresent(inner, presentFields(condition)));
      inner = withPresent(inner, presentFields(condition, false));
    }
    this.all(otherwise, inner);
  }

  private loop({ offset, name, source, parts, otherwise }: TemplateLoop, scope: Scope): void {
    this.all(otherwise, scope);
    const type = certainType(source, scope);
    const element = typeof type === 'string' ? type : typeOfElement(loopedType(source, type));
    if (scope.locals?.has(name)) {
      this.report(offset, `${quoted(name)} is the name of something around this loop; choose another name`);
    } else if (typeof element === 'string') this.report(offset, element);
    else {
      const locals = new Map(scope.locals).set(name, certain(element)).set(FORLOOP, certain(PLACE));
      this.all(parts, { ...scope, locals });
    }
  }

  private call({ offset, id, given }: TemplateCall, scope: Scope): void {
    if (!this.known.rendered.has(id)) {
      const message = this.known.plain.has(id)
        ? `the template ${quoted(id)} has no engine; add engine: liquid to it`
        : `no template has the id ${quoted(id)}${suggestion(id, this.known.rendered.keys())}`;
      this.report(offset, message);
      return;
    }
    if (this.around.includes(id)) {
      this.report(offset, `the template ${quoted(id)} would render itself without end`);
      return;
    }
    if (this.around.length >= MAX_NESTING) {
      this.report(offset, `templates render others at most ${MAX_NESTING} levels deep`);
      return;
    }
    const locals = new Map<string, FieldType>();
    for (const { name, value } of given) {
      const isOwnFact = 'from' in value && value.from === 'facts';
      const typed = isOwnFact ? OWN_FACT : typeOfArgument(value, scope);
      if (typeof typed === 'string') {
        this.report(offset, typed);
        return;
      }
      locals.set(name, certain(typed.type));
    }
    const present = [...scope.present].filter((one) => /^(inputs|each)\./.test(one));
    this.whole(id, { ...scope, locals, present: new Set(present) });
  }

  private report(offset: number, message: string | null): void {
    const id = this.around.at(-1) ?? '';
    const key = JSON.stringify([id, offset, message]);
    if (message === null || this.reported.has(key)) return;
    this.reported.add(key);
    this.problems.push({ id, offset, message });
  }
}

const withPresent = (scope: Scope, names: readonly string[]): Scope =>
  names.length === 0 ? scope : { ...scope, present: new Set([...scope.present, ...names]) };

/** Returns the type of the name that a loop gives, or a message about a value that it cannot go over. */
function typeOfElement(type: ValueType): ValueType | string {
  if (type.type === 'unknown') return type;
  if (type.type !== 'list' && type.type !== 'map') {
    const mend = type.type === 'text' ? '; make a list of it first, such as with | split: ","' : '';
    return `a loop goes over a list or a mapping, and this is ${nounOf(type)}${mend}`;
  }
  const element = elementType(type);
  if (element === null) return 'the members of this mapping have different types; name those that you need';
  return type.type === 'list' ? element : declared({ key: TEXT, value: element });
}
