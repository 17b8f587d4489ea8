// A decoder, whole, as an operator graph.
//
//   inputs    `tokens` (int32, one a row); `rotary.cosines` and `rotary.sines` (one row a row, those of its position)
//   rows      a token each: decode has one a sequence, prefill `context` a sequence, sequence after sequence
//   cache     decode updates `cache.I.key` and `cache.I.value` (role state) in place: `context` positions a sequence, or
//             a window, the last of which becomes the new position's. Prefill has none, and gives all positions' as the
//             outputs `present.I.key` and `present.I.value`.
//   output    `logits`, a row for the last token of each sequence
//   weights   by their names in the model's files, [out, in], so that a matmul is `transposed`
//   values    of the files where the folder has some; else random, from a seed that follows from the tensor's name, in
//   a
//             range that keeps activations near 1
//   batch     of more than one: attention works on stacks, [batch, positions, columns]
//   sequence parallel
//             the embedding, and what leaves attention and MLP, is scattered by rows, so that residuals and norms between
//             work on each chip's rows; the last norm then takes all rows, of which the last of each sequence are kept
//   experts   parallel: all that is done of expert e of E is for one chip (`alone = [e, E]`), whose result the others are
//             sent; router, weights and the sum of each token's experts are as in the other form
//   fp8       what meets an fp8 matrix is cast before; results are bf16
#pragma once

#include <string>

#include "compiler/workload/hf_files.h"
#include "compiler/workload/hf_request.h"
#include "compiler/workload/operator_graph.h"

namespace rdusim {

// What of the model has no operator yet, a line each: "a router that takes 2 of 8 experts". Empty: all of it has.
std::vector<std::string> not_expressible(const DecoderConfig& config);

// Requires `config` from asked_of(config, request). Errors: RDU1045; RDU1046 where the rotary tables would be too
// large; those of HfFiles::find.
Result<OperatorGraph> decoder_graph(const std::string& name, const DecoderConfig& config, const DecoderRequest& request,
                                    HfFiles& files);

// Of a config.json, or a folder that has one; weights are looked for beside it, and their paths are relative to its
// folder. Without request.context: 4096, or all positions of the model where it has fewer. The graph is named after the
// folder. Errors: those of read_hf_config, asked_of, HfFiles::open and decoder_graph.
Result<OperatorGraph> read_hf_model(const std::string& path, const DecoderRequest& request);

}  // namespace rdusim
