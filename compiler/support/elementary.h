// Elementary functions of fp32 with the same bits on every computer: the definitions that workloads and programs mean.
//
// Worked out in double by additions and multiplications in a fixed order (the build sets -ffp-contract=off) and rounded
// once to float; IEEE division and square root are exact already. Within 1 unit in the last place of the true value,
// which a test holds them to against the C library for every bf16 and for a spread of floats. Special values as in C:
// exp(-inf) = +0, exp(inf) = inf, tanh(+-inf) = erf(+-inf) = +-1, NaN gives the one quiet NaN 0x7FC00000; signed zero
// kept by tanh and erf.
#pragma once

namespace rdusim {

float exp_fp32(float x);
float tanh_fp32(float x);
float erf_fp32(float x);

}  // namespace rdusim
