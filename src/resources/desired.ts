/** The desired set: what the orchestrator resolved for one agent, as it crosses the link. */
import * as Type from 'typebox';

/** A part of a string that came from a secret; see `src/kernel/tainted.ts`. */
export const SpanSchema = Type.Object(
  {
    start: Type.Integer({ minimum: 0 }),
    end: Type.Integer({ minimum: 0 }),
    secret: Type.String({ maxLength: 128 }),
    tag: Type.String({ maxLength: 8 }),
  },
  { additionalProperties: false },
);

/** What makes a resource findable in reports. `module` and `identity` together are unique within a family. */
const address = {
  module: Type.String({ maxLength: 128 }),
  kind: Type.String({ maxLength: 64 }),
  identity: Type.String({ maxLength: 8192 }),
};

export const DesiredResourceSchema = Type.Object(
  {
    ...address,
    id: Type.Union([Type.String({ maxLength: 256 }), Type.Null()]),
    name: Type.Union([Type.String({ maxLength: 1024 }), Type.Null()]),
    /** The body with every template and expression filled in. */
    body: Type.Record(Type.String(), Type.Unknown()),
    /** JSON pointer inside the body -> the secret parts of the string there. */
    taint: Type.Optional(Type.Record(Type.String(), Type.Array(SpanSchema))),
    /** Positions in the desired set of the resources that must succeed before this one. */
    after: Type.Array(Type.Integer({ minimum: 0 })),
    /** `reload_on` and its like, not in the body: positions of the resources whose change triggers this one. */
    triggers: Type.Optional(Type.Record(Type.String({ maxLength: 64 }), Type.Array(Type.Integer({ minimum: 0 })))),
  },
  { additionalProperties: false },
);

/** One resource of the desired set, in the order of application. */
export type DesiredResource = Type.Static<typeof DesiredResourceSchema>;

export const RemovalSchema = Type.Object(
  {
    ...address,
    id: Type.Union([Type.String({ maxLength: 256 }), Type.Null()]),
    name: Type.Union([Type.String({ maxLength: 1024 }), Type.Null()]),
    /** The body it was last applied with; secrets are masked unless its removal needs them. */
    body: Type.Record(Type.String(), Type.Unknown()),
    /** As in a desired resource, when secrets are in the body. */
    taint: Type.Optional(Type.Record(Type.String(), Type.Array(SpanSchema))),
    /** `created` is removed, `adopted` was there before and is released. */
    origin: Type.Union([Type.Literal('created'), Type.Literal('adopted')]),
  },
  { additionalProperties: false },
);

/** A resource that is managed and no longer desired, in the order of its original application. */
export type Removal = Type.Static<typeof RemovalSchema>;
export type Origin = Removal['origin'];
