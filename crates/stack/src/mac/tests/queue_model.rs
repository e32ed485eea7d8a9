use std::collections::VecDeque;

use proptest::prelude::*;

use crate::mac::Class;
use crate::mac::queue::{Frame, FrameQueue, FrameSlot, NIL};
use crate::time::Instant;
use crate::wire::LinkAddr;

#[derive(Clone, Debug)]
enum Step {
    Push(u16, u8),
    Remove(usize),
}

proptest! {
    /// Against a `VecDeque`: same frames, same order, whatever is taken out of the middle.
    #[test]
    fn is_a_bounded_list(
        capacity in 0usize..6,
        steps in prop::collection::vec(
            prop_oneof![
                (any::<u16>(), 0u8..=120).prop_map(|(token, len)| Step::Push(token, len)),
                (0usize..6).prop_map(Step::Remove),
            ],
            0..100,
        ),
    ) {
        let mut slots = std::vec![FrameSlot::EMPTY; capacity];
        let mut queue = FrameQueue::new(&mut slots);
        let mut model = VecDeque::new();
        for step in steps {
            match step {
                Step::Push(token, len) => {
                    let payload = std::vec![token as u8; usize::from(len)];
                    let index = queue.push(&Frame {
                        to: LinkAddr::Short(1),
                        token,
                        payload: &payload,
                        class: Class::Own,
                        since: Instant::ORIGIN,
                    });
                    prop_assert_eq!(index.is_some(), model.len() < capacity && len <= 116);
                    if let Some(index) = index {
                        model.push_back((index, token, payload));
                    }
                }
                Step::Remove(nth) => {
                    let index = model.remove(nth).map(|(index, ..)| index);
                    prop_assert_eq!(queue.remove(index.unwrap_or(NIL)), index.is_some());
                    if let Some(index) = index {
                        prop_assert!(!queue.remove(index), "removed once");
                    }
                }
            }
            let held: VecDeque<_> =
                queue.iter().map(|(index, slot)| (index, slot.token, slot.payload().to_vec())).collect();
            prop_assert_eq!(&held, &model);
            prop_assert_eq!(queue.len(), model.len());
        }
    }
}
