// The only kernel of the GPU benchmarks, as PTX. The driver compiles it for the device, so no CUDA compiler
// is needed.
//
//   work(beat, loops): each thread does 32 dependent multiply-adds per loop. It is an amount of work and not
//   a time, so that a kernel that is switched out makes no progress, like real ones. `beat`: null, or two
//   words. The first thread of the grid changes the first word in each loop, which shows that the kernel runs
//   now. It increments the second word at its end, which counts kernels (of one stream at a time).
#pragma once

// clang-format off
#define XSCHED_FMA_4 "fma.rn.f32 %f1, %f1, %f2, %f3;\n" "fma.rn.f32 %f1, %f1, %f2, %f3;\n" \
                     "fma.rn.f32 %f1, %f1, %f2, %f3;\n" "fma.rn.f32 %f1, %f1, %f2, %f3;\n"
#define XSCHED_FMA_32 XSCHED_FMA_4 XSCHED_FMA_4 XSCHED_FMA_4 XSCHED_FMA_4 XSCHED_FMA_4 XSCHED_FMA_4 XSCHED_FMA_4 XSCHED_FMA_4

inline constexpr char kWorkKernel[] =
    ".version 6.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry work(.param .u64 beat, .param .u32 loops)\n"
    ".maxntid 1024, 1, 1\n"
    "{\n"
    "  .reg .pred %p<6>;\n"
    "  .reg .f32 %f<4>;\n"
    "  .reg .b32 %r<6>;\n"
    "  .reg .b64 %rd<4>;\n"
    "  ld.param.u64 %rd1, [beat];\n"
    "  ld.param.u32 %r1, [loops];\n"
    "  mov.u32 %r2, %tid.x;\n"
    "  mov.u32 %r3, %ctaid.x;\n"
    "  or.b32 %r4, %r2, %r3;\n"
    "  setp.eq.u32 %p1, %r4, 0;\n"
    "  setp.ne.and.u64 %p2, %rd1, 0, %p1;\n"
    "  cvt.rn.f32.u32 %f1, %r2;\n"
    "  mov.f32 %f2, 0f3F7FF972;\n"  // 0.9999
    "  mov.f32 %f3, 0f3F000000;\n"  // 0.5
    "loop:\n"
    "  @%p2 mov.u64 %rd2, %clock64;\n"
    "  @%p2 st.volatile.global.u64 [%rd1], %rd2;\n"
    XSCHED_FMA_32
    "  add.u32 %r1, %r1, -1;\n"
    "  setp.gt.s32 %p3, %r1, 0;\n"
    "  @%p3 bra loop;\n"
    "  @!%p2 bra counted;\n"
    "  ld.volatile.global.u64 %rd3, [%rd1+8];\n"
    "  add.u64 %rd3, %rd3, 1;\n"
    "  st.volatile.global.u64 [%rd1+8], %rd3;\n"
    "counted:\n"
    // Never so, which the compiler cannot know: the sums have a use.
    "  setp.lt.f32 %p4, %f1, 0f00000000;\n"
    "  @%p4 st.volatile.global.f32 [%rd1], %f1;\n"
    "  ret;\n"
    "}\n";
// clang-format on

#undef XSCHED_FMA_4
#undef XSCHED_FMA_32
