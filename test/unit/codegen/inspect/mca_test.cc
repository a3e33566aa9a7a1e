// SPDX-License-Identifier: Apache-2.0
// Loops are found in assembly by the comments that LLVM writes after labels.
#include "tools/report/mca.h"

#include <gtest/gtest.h>

#include <string>

namespace quern {
namespace {

// A loop with a nested one. Its block BB4_5 precedes its header, as LLVM rotates loops.
constexpr const char* kNested = R"(quern_join_compare:                     # @quern_join_compare
# %bb.0:                                # %entry
	pushq	%rbp
.LBB4_5:                                # %next
                                        #   in Loop: Header=BB4_1 Depth=1
	incl	%ecx
.LBB4_1:                                # %rows
                                        # =>This Loop Header: Depth=1
                                        #     Child Loop BB4_2 Depth 2
	movl	%ecx, %edx
	.p2align	4
.LBB4_2:                                # %bytes
                                        #   Parent Loop BB4_1 Depth=1
                                        # =>  This Inner Loop Header: Depth=2
	cmpb	%al, %bl
# %bb.3:                                #   in Loop: Header=BB4_2 Depth=2
	jne	.LBB4_2
# %bb.4:                                #   in Loop: Header=BB4_1 Depth=1
	cmpl	%r9d, %ecx
	jb	.LBB4_5
.LBB4_6:                                # %exit
	retq
.Lfunc_end4:
quern_join_emit:                        # @quern_join_emit
# %bb.0:                                # %entry
	retq
)";

constexpr const char* kArm = R"(quern_sort_encode_leading:                        // @quern_sort_encode_leading
// %bb.0:                               // %entry
	mov	w8, wzr
.LBB1_2:                                // =>This Inner Loop Header: Depth=1
	ldr	x9, [x0, #8]
	// kill: w9
	b.ne	.LBB1_2
.Lfunc_end1:
)";

using Lines = std::vector<std::string>;

TEST(Mca, EachLoopHasItsOwnBlocksAlone) {
  const std::vector<AssemblyLoop> loops = FindLoops(kNested);
  ASSERT_EQ(loops.size(), 2u);
  EXPECT_EQ(loops[0].name, "quern_join_compare.BB4_1");
  EXPECT_EQ(loops[0].depth, 1);
  EXPECT_EQ(loops[0].instructions,
            (Lines{"\tincl\t%ecx", "\tmovl\t%ecx, %edx", "\tcmpl\t%r9d, %ecx", "\tjb\t.LBB4_5"}));
  EXPECT_EQ(loops[1].name, "quern_join_compare.BB4_2");
  EXPECT_EQ(loops[1].depth, 2);
  EXPECT_EQ(loops[1].instructions, (Lines{"\tcmpb\t%al, %bl", "\tjne\t.LBB4_2"}));
}

TEST(Mca, ArmHasOtherComments) {
  const std::vector<AssemblyLoop> loops = FindLoops(kArm);
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0].name, "quern_sort_encode_leading.BB1_2");
  EXPECT_EQ(loops[0].instructions, (Lines{"\tldr\tx9, [x0, #8]", "\tb.ne\t.LBB1_2"}));
}

TEST(Mca, CodeWithoutLoopsNeedsNoProgram) {
  EXPECT_TRUE(FindLoops("").empty());
  EXPECT_TRUE(FindLoops("quern_join_pack:\n\tretq\n").empty());
  EXPECT_EQ(*McaView("quern_join_pack:\n\tretq\n", Machine{}, ""), "no loop is compiled of this kernel\n");
}

}  // namespace
}  // namespace quern
