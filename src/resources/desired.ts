/** The desired set of one agent, as the orchestrator resolves it and sends it over the link. */
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

/** The address of a resource in reports. `module` and `identity` together are unique within a family. */
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
    /** Secret parts of strings, by JSON pointer in the body. */
    taint: Type.Optional(Type.Record(Type.String(), Type.Array(SpanSchema))),
    /** Positions in the desired set of the resources that must succeed before this one. */
    after: Type.Array(Type.Integer({ minimum: 0 })),
    /**
     * Positions of the resources whose change triggers this one, by `reload_on` and similar fields. Those of removals follow
     * those of the resources.
     */
    triggers: Type.Optional(Type.Record(Type.String({ maxLength: 64 }), Type.Array(Type.Integer({ minimum: 0 })))),
  },
  { additionalProperties: false },
);

/** One resource of the desired set, which is in the order of application. */
export type DesiredResource = Type.Static<typeof DesiredResourceSchema>;

export const RemovalSchema = Type.Object(
  {
    ...address,
    id: Type.Union([Type.String({ maxLength: 256 }), Type.Null()]),
    name: Type.Union([Type.String({ maxLength: 1024 }), Type.Null()]),
    /** The last applied body; secrets are masked unless the removal needs them. */
    body: Type.Record(Type.String(), Type.Unknown()),
    /** As in a desired resource, if the body holds secrets. */
    taint: Type.Optional(Type.Record(Type.String(), Type.Array(SpanSchema))),
    /** `created` is removed; `adopted` existed before and is released. */
    origin: Type.Union([Type.Literal('created'), Type.Literal('adopted')]),
  },
  { additionalProperties: false },
);

/** A managed resource that is no longer desired; removals are in the order of their original application. */
export type Removal = Type.Static<typeof RemovalSchema>;
export type Origin = Removal['origin'];
