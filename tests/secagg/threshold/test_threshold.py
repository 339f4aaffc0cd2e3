"""Threshold decryption: any t trustees decrypt like the whole key, fewer cannot."""

from __future__ import annotations

from dataclasses import replace

import gmpy2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from paillier_keys import keypair
from raised import rejects
from secagg import (
    FixedPoint,
    Packing,
    ParameterError,
    RemoteProtocolError,
    TooFewSurvivors,
)
from secagg.threshold import KeyShare, PartialDecryption
from threshold_keys import GROUPS, claim, dealing, ordinary, square_root_of_one, values_of

KEY, SHARES = dealing(5, 3)
PUBLIC = KEY.public_key
N = int(PUBLIC.n)
MESSAGES = [0, 1, -1, N // 2, -(N // 2), 12345]
SENT = PUBLIC.encrypt(MESSAGES)
PARTIALS = {share.index: share.decrypt_partially(SENT) for share in SHARES}


@examples(40)
@given(st.data())
def test_any_t_trustees_decrypt_like_the_ordinary_key(data: st.DataObject) -> None:
    """Any t trustees, in any order, decrypt like the ordinary key."""
    trustees, threshold = data.draw(st.sampled_from(GROUPS))
    key, shares = dealing(trustees, threshold)
    messages = data.draw(st.lists(st.integers(-(N // 2), N // 2), max_size=6))
    count = data.draw(st.integers(threshold, trustees))
    chosen = data.draw(st.permutations(shares))[:count]
    ciphertexts = key.public_key.encrypt(messages)
    partials = [
        key.load_partial(share.decrypt_partially(ciphertexts).to_bytes()) for share in chosen
    ]
    assert key.combine(ciphertexts, partials) == messages
    assert ordinary(trustees, threshold).decrypt(ciphertexts) == messages


@examples(15)
@given(
    st.integers(1, 4), st.integers(1, 40), st.sampled_from([None, 9]), st.permutations(SHARES)
)
def test_sums_of_vectors_are_the_same_as_under_the_ordinary_key(
    clients: int, length: int, most: int | None, chosen: list[KeyShare]
) -> None:
    encoding = FixedPoint(clip=8.0, rounding="nearest")
    packing = Packing(encoding=encoding, length=length, summands=clients, max_weight=most)
    vectors = np.random.default_rng(length).uniform(-8, 8, size=(clients, length))
    weights = [None if most is None else client + 1 for client in range(clients)]
    total = sum(
        PUBLIC.load_vector(PUBLIC.encrypt_vector(x, packing, w).to_bytes(), packing)
        for x, w in zip(vectors, weights, strict=True)
    )
    total = PUBLIC.load_vector(total.to_bytes(), packing, clients)
    parts = (share.decrypt_partially(total.ciphertexts) for share in chosen[:3])
    result, expected = KEY.combine_vector(total, parts), ordinary(5, 3).decrypt_vector(total)
    assert result.integers.tolist() == expected.integers.tolist()
    assert result.sum.tolist() == expected.sum.tolist()
    assert (result.summands, result.weight) == (expected.summands, expected.weight)


def test_one_trustee_fewer_than_the_threshold_is_rejected() -> None:
    for chosen in ([], [2], [5, 1]):
        with pytest.raises(TooFewSurvivors) as caught:
            KEY.combine(SENT, [PARTIALS[i] for i in chosen])
        assert caught.value.phase == "threshold_decryption"
        assert (caught.value.survivors, caught.value.needed) == (len(chosen), 3)


def test_one_trustee_too_few_cannot_decrypt() -> None:
    """Two shares joined as if two were enough give a number that has nothing to do with m."""
    easier = replace(KEY, threshold=2)
    partials = [
        replace(share.decrypt_partially(SENT), key_id=easier.key_id) for share in SHARES[:2]
    ]
    rejects("proof", lambda: easier.combine(SENT, partials))
    parts = [KeyShare(easier, s.index, s._secret).decrypt_partially(SENT) for s in SHARES[:2]]
    rejects("dealing", lambda: easier.combine(SENT, parts))


def rejection(partials: list[PartialDecryption], check: str, sender: int | None) -> str:
    with pytest.raises(RemoteProtocolError) as caught:
        KEY.combine(SENT, partials)
    assert caught.value.check == check
    assert caught.value.sender == sender
    assert caught.value.phase == "threshold_decryption"
    return str(caught.value)


def altered(values: list[int], how: str) -> list[int]:
    """Return a trustee's values, altered in one of the ways of a cheat."""
    square = N * N
    first, second, *rest = values
    return {
        "plaintext": [first * (1 + N) % square, second, *rest],
        "random": [pow(3, 12345, square), second, *rest],
        "swapped": [second, first, *rest],
        "negated": [square - first, second, *rest],
        "root of one": [first * square_root_of_one(N) % square, second, *rest],
        "another trustee's": values_of(PARTIALS[4]),
        "one": [1] * len(values),
        "product kept": [first * (1 + N) % square, second * (1 - N) % square, *rest],
    }[how]


ALTERATIONS = (
    "plaintext", "random", "swapped", "negated", "root of one", "another trustee's", "one",
    "product kept",
)  # fmt: skip
HARMLESS = ("negated", "root of one")


@pytest.mark.parametrize("how", ALTERATIONS)
def test_altered_values_raise_with_the_trustees_index(how: str) -> None:
    wrong = altered(values_of(PARTIALS[2]), how)
    values = replace(PARTIALS[2].values, batch=PUBLIC.modulus.pack(wrong))
    bad = replace(PARTIALS[2], values=values)
    for partials in ([PARTIALS[1], bad, PARTIALS[3]], [bad, *(PARTIALS[i] for i in (1, 3, 5))]):
        assert "trustee 2;" in rejection(partials, "proof", 2)


@pytest.mark.parametrize("how", ALTERATIONS)
def test_altered_and_proved_values_fail_or_change_nothing(how: str) -> None:
    """A square root of 1 passes without effect; every other alteration is found."""
    bad = claim(SHARES[1], SENT, altered(values_of(PARTIALS[2]), how))
    partials = [PARTIALS[1], bad, PARTIALS[3]]
    if how in HARMLESS:
        assert KEY.combine(SENT, partials) == MESSAGES
    else:
        rejection(partials, "proof", 2)


def test_honest_claim_is_accepted() -> None:
    """The rejections above are thus for the values, not for the way the test proves them."""
    honest = claim(SHARES[1], SENT, values_of(PARTIALS[2]))
    assert KEY.combine(SENT, [PARTIALS[1], honest, PARTIALS[3]]) == MESSAGES


def test_partial_from_elsewhere_fails_its_own_check() -> None:
    """A partial decryption of another sum or key fails its own check."""
    others = PUBLIC.encrypt(MESSAGES)
    elsewhere = SHARES[1].decrypt_partially(others)
    good = [PARTIALS[1], PARTIALS[3]]
    rejection([*good, elsewhere], "ciphertexts", 2)
    rejection([*good, replace(elsewhere, digest=SENT.digest())], "proof", 2)
    fewer = SHARES[1].decrypt_partially(PUBLIC.encrypt(MESSAGES[:2]))
    rejection([*good, replace(fewer, digest=SENT.digest())], "ciphertexts", 2)
    rejection([*good, replace(PARTIALS[2], index=4)], "proof", 4)
    rejection([*good, PARTIALS[2], PARTIALS[3]], "duplicate", 3)
    rejection([PARTIALS[1], PARTIALS[1], PARTIALS[1]], "duplicate", 1)
    other = dealing(5, 2)[1][1].decrypt_partially(dealing(5, 2)[0].public_key.encrypt(MESSAGES))
    rejection([*good, other], "key", 2)
    rejection([*good, replace(PARTIALS[2], proof=PARTIALS[4].proof)], "proof", 2)


def test_trustee_cannot_act_for_another_with_the_same_share() -> None:
    """One trustee cannot act for another that has the same share."""
    key, shares = dealing(3, 1)
    sent = key.public_key.encrypt([3])
    partial = shares[0].decrypt_partially(sent)
    assert key.combine(sent, [partial]) == [3]
    with pytest.raises(RemoteProtocolError) as caught:
        key.combine(sent, [replace(partial, index=2)])
    assert (caught.value.check, caught.value.sender) == ("proof", 2)


def test_all_bad_trustees_are_named_and_can_be_left_out() -> None:
    bad = {
        i: claim(SHARES[i - 1], SENT, altered(values_of(PARTIALS[i]), "plaintext"))
        for i in (2, 4)
    }
    partials = [bad.get(i, PARTIALS[i]) for i in range(1, 6)]
    message = rejection(partials, "proof", 2)
    assert "trustee 2, trustee 4;" in message
    assert KEY.combine(SENT, [x for x in partials if x.index not in bad]) == MESSAGES


def test_shares_of_two_dealings_under_one_key_are_detected() -> None:
    """Every proof is valid, but the parts do not combine: only a dealer can cause that."""
    secret = SHARES[1]._secret + 1
    images = list(KEY.images)
    images[1] = int(gmpy2.powmod(KEY.base, KEY.delta * secret, N * N))
    botched = replace(KEY, images=tuple(images))
    secrets = {share.index: share._secret for share in SHARES} | {2: secret}
    partials = [KeyShare(botched, i, secrets[i]).decrypt_partially(SENT) for i in (1, 2, 3)]
    with pytest.raises(RemoteProtocolError) as caught:
        botched.combine(SENT, partials)
    assert (caught.value.check, caught.value.sender) == ("dealing", None)


def test_arguments_of_another_key_or_kind_are_rejected() -> None:
    foreign = keypair().public_key.encrypt([1])
    packing = Packing(encoding=FixedPoint(clip=1.0), length=3, summands=4)
    vector = PUBLIC.encrypt_vector(np.zeros(3), packing)
    for wrong in (foreign, [1, 2], vector):
        for use in (SHARES[0].decrypt_partially, lambda x: KEY.combine(x, [])):
            with pytest.raises(ParameterError):
                use(wrong)  # type: ignore[operator]
    with pytest.raises(ParameterError):
        KEY.combine_vector(vector.ciphertexts, [])
    for partials in (PARTIALS[1], [PARTIALS[1], PARTIALS[2].to_bytes()]):
        with pytest.raises(ParameterError):
            KEY.combine(SENT, partials)
    parts = (share.decrypt_partially(vector.ciphertexts) for share in SHARES[:3])
    rejects("summands", lambda: KEY.combine_vector(replace(vector, added=2), parts))


def test_check29_reprs_contain_no_secret() -> None:
    shown = f"{KEY!r} {SHARES!r} {PARTIALS[1]!r}"
    for share in SHARES:
        assert str(share._secret) not in shown
        assert hex(share._secret)[2:] not in shown
    assert "3 of 5, 512 bits" in repr(KEY)
    assert "trustee 1, 6 ciphertexts" in repr(PARTIALS[1])
