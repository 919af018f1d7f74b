/** The error answers of the OpenAPI document, each once under `components/responses`. */
import type { FaultCode } from '../kernel/fault-code.js';
import { canonicalJson, type JsonObject } from '../kernel/json.js';
import { FAULTS } from './faults.js';
import { headersOfProblem } from './openapi-headers.js';
import type { WriteSchema } from './openapi-schema.js';
import { ProblemSchema } from './problem.js';
import type { RouteSpec } from './route.js';

export interface ProblemOptions {
  readonly route: RouteSpec;
  readonly status: number;
  /** That the status stands for at this route. */
  readonly codes: readonly FaultCode[];
  readonly write: WriteSchema;
}

export class SharedResponses {
  private readonly responses: Record<string, JsonObject> = {};
  private readonly names = new Map<string, string>();

  /** A reference to the answer with that status, which tells the codes behind it. */
  problem(options: ProblemOptions): JsonObject {
    const response = problemOf(options);
    const key = canonicalJson(response);
    const name = this.names.get(key) ?? this.freeName(options);
    this.names.set(key, name);
    this.responses[name] = response;
    return { $ref: `#/components/responses/${name}` };
  }

  definitions(): JsonObject {
    return this.responses;
  }

  /** After its code when there is but one, else after its status; a second one of that name after its first operation too. */
  private freeName({ route, status, codes }: ProblemOptions): string {
    const [code] = codes;
    const name = codes.length === 1 && code !== undefined ? pascalCase(code) : `Problem${status}`;
    return name in this.responses ? `${name}Of${pascalCase(route.id)}` : name;
  }
}

/** `listAgents` and `rate_limited` as the name of a type. */
export const pascalCase = (text: string): string =>
  text.replace(/(?:^|_)(\w)/g, (_, first: string) => first.toUpperCase());

function problemOf({ route, status, codes, write }: ProblemOptions): JsonObject {
  const sorted = [...codes].sort();
  const code = { type: 'string', enum: sorted };
  return {
    description: sorted.map((name) => `${FAULTS[name].title} (\`${name}\`)`).join(', '),
    headers: headersOfProblem(route, status),
    content: {
      'application/problem+json': { schema: { allOf: [write(ProblemSchema), { properties: { code } }] } },
    },
  };
}
