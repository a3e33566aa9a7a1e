// SPDX-License-Identifier: Apache-2.0
//! The kinds of joins, and which side of each is built.

use datafusion::common::{JoinSide, JoinType, NullEquality};
use datafusion::physical_plan::joins::HashJoinExec;

/// The kinds of joins. But for the last three the left side is built and the right side probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    LeftSemi,
    LeftAnti,
    RightSemi,
    RightAnti,
    /// `NOT IN`: the left side probes.
    NullAwareAnti,
    /// Every left row, and whether it has a match. The left side probes.
    LeftMark,
    /// The same of right rows, and of the right side.
    RightMark,
}

impl JoinKind {
    /// None for kinds that stay `DataFusion`'s.
    pub(crate) fn of(join: &HashJoinExec) -> Option<Self> {
        if join.null_aware {
            let is_plain = *join.join_type() == JoinType::LeftAnti
                && join.null_equality() == NullEquality::NullEqualsNothing
                && join.on().len() == 1
                && join.filter().is_none();
            return is_plain.then_some(Self::NullAwareAnti);
        }
        Some(match *join.join_type() {
            JoinType::Inner => Self::Inner,
            JoinType::Left => Self::Left,
            JoinType::Right => Self::Right,
            JoinType::Full => Self::Full,
            JoinType::LeftSemi => Self::LeftSemi,
            JoinType::LeftAnti => Self::LeftAnti,
            JoinType::RightSemi => Self::RightSemi,
            JoinType::RightAnti => Self::RightAnti,
            JoinType::LeftMark => Self::LeftMark,
            JoinType::RightMark => Self::RightMark,
        })
    }

    /// The name in a spec, which calls the probe side the left one.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Inner => "inner",
            Self::Left => "right",
            Self::Right => "left",
            Self::Full => "full",
            Self::LeftSemi => "right_semi",
            Self::LeftAnti => "right_anti",
            Self::RightSemi => "semi",
            Self::RightAnti => "anti",
            Self::NullAwareAnti => "anti_null_aware",
            Self::LeftMark | Self::RightMark => "mark",
        }
    }

    pub(crate) fn build_side(self) -> JoinSide {
        if matches!(self, Self::NullAwareAnti | Self::LeftMark) { JoinSide::Right } else { JoinSide::Left }
    }

    /// A column says whether a row has a match.
    pub(crate) fn is_mark(self) -> bool {
        matches!(self, Self::LeftMark | Self::RightMark)
    }

    /// The kind that gives the same where the right side is built and the left one probes.
    pub(crate) fn exchanged(self) -> Option<Self> {
        match self {
            Self::LeftSemi => Some(Self::RightSemi),
            Self::LeftAnti => Some(Self::RightAnti),
            _ => None,
        }
    }

    pub(crate) fn has_unmatched(self) -> bool {
        matches!(self, Self::Left | Self::Full | Self::LeftSemi | Self::LeftAnti)
    }

    /// A row of the probe side that has no match neither comes out nor changes what does. The rows of the table come
    /// out one by one, with what matches them.
    pub(crate) fn drops_unmatched_probe(self) -> bool {
        matches!(self, Self::Inner | Self::Left | Self::LeftSemi | Self::LeftAnti | Self::RightSemi)
    }

    pub(crate) fn nulls_probe(self) -> bool {
        matches!(self, Self::Left | Self::Full)
    }

    pub(crate) fn nulls_build(self) -> bool {
        matches!(self, Self::Right | Self::Full)
    }
}
