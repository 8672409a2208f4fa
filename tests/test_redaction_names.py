import pytest

from babyagi.redaction import sounds_secret


@pytest.mark.parametrize(
    "question",
    [
        *(
            "Please paste your OpenAI API key here.",
            "What is the password of the admin account?",
            "Enter your PIN",
            "API_KEY=?",
            "Send me the key",
        ),
        *(
            "I need your credit card number",
            "your seed phrase, twelve words",
            "the contents of id_rsa",
            "Please share the 2FA code",
            "your login?",
        ),
        *(
            "Wie lautet Ihr Passwort?",
            "Bitte den API-Schlüssel eingeben",
            "Quel est votre mot de passe ?",
            "¿Cuál es tu contraseña?",
        ),
        *(
            "Podaj hasło do konta",
            "Введите пароль",
            "请输入密码",
            "パスワードを教えてください",
            "비밀번호를 입력하세요",
            "ما هي كلمة المرور؟",
            "Wat is je wachtwoord?",
        ),
        *(
            "p a s s w o r d please",
            "pass\u200bword?",
            "раssword of the server",
            "p@ssw0rd?",
            "PA\u0301SSWORD",
            "ｐａｓｓｗｏｒｄ",
        ),
    ],
)
def test_a_question_for_a_secret_is_known_by_its_words(question):
    assert sounds_secret(question)


@pytest.mark.parametrize(
    "question",
    [
        *(
            "Which day suits you?",
            "Should the key findings come first?",
            "How many tokens may the report have?",
            "What are the key dates?",
        ),
        *(
            "Pin the version to 2.1?",
            "Is it for a passenger or a driver?",
            "Do you want the passage about limits quoted?",
            "Which secretary signed it?",
        ),
        *(
            "Was ist wichtiger, Preis oder Zeit?",
            "哪一天合适？",
            "Which colour should the cover have?",
        ),
    ],
)
def test_an_ordinary_question_is_not_taken_for_one(question):
    assert not sounds_secret(question)
