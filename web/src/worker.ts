/** The page's Worker: opens the files once, then answers one question after the other. */
import { Engine, type EngineFiles, type Piece } from "./engine";
import { ensureDigest } from "./sha256";

export type ToWorker = { readonly kind: "open"; readonly files: EngineFiles } | { readonly kind: "ask"; readonly id: number; readonly row: Float64Array };
export type FromWorker =
  | { readonly kind: "ready" }
  | { readonly kind: "piece"; readonly id: number; readonly piece: Piece }
  | { readonly kind: "done"; readonly id: number }
  | { readonly kind: "failed"; readonly sentence: string };

ensureDigest();
let engine: Promise<Engine> | null = null;
const send = (message: FromWorker): void => self.postMessage(message);

self.onmessage = async ({ data }: MessageEvent<ToWorker>) => {
  try {
    if (data.kind === "open") {
      engine = Engine.open(data.files);
      await engine;
      send({ kind: "ready" });
      return;
    }
    if (engine === null) throw new Error("a question came before the files");
    await (await engine).ask(data.row, (piece) => send({ kind: "piece", id: data.id, piece }));
    send({ kind: "done", id: data.id });
  } catch (error) {
    send({ kind: "failed", sentence: error instanceof Error ? error.message : String(error) });
  }
};
